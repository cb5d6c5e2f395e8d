package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/mcpx-go/mcpx/internal/devserver"
	"github.com/mcpx-go/mcpx/manifest"
	"github.com/mcpx-go/mcpx/sdk"
)

// defaultAddress is where Temporal is looked for when nobody says where it is.
const defaultAddress = "127.0.0.1:7233"

// temporalAt says where Temporal is, and how that is known.
type temporalAt struct {
	options sdk.Options
	// chosen: a person chose it, by a flag, a variable or a profile.
	chosen bool
	how    string
}

// temporal finds out where Temporal is: the flags, else Temporal's own variables and profiles, else a development stack
// that runs on the data directory, else the default.
func (a *App) temporal() (temporalAt, error) {
	at := temporalAt{options: sdk.Options{Address: a.Address, Namespace: a.Namespace, Profile: a.Profile}}
	if a.Address != "" {
		at.chosen, at.how = true, "--address"
		return at, nil
	}
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: a.Profile})
	if err != nil {
		return at, usagef("profile of temporal.toml: %w", err)
	}
	if at.options.Namespace == "" {
		at.options.Namespace = profile.Namespace
	}
	named := a.Profile
	if named == "" {
		named = os.Getenv("TEMPORAL_PROFILE")
	}
	switch {
	case os.Getenv("TEMPORAL_ADDRESS") != "":
		at.chosen, at.how = true, "TEMPORAL_ADDRESS"
	case profile.Address != "":
		at.chosen, at.how = true, "a profile of temporal.toml"
	case named != "":
		at.chosen, at.how = true, fmt.Sprintf("profile %q of temporal.toml, which names no address", named)
		at.options.Address = defaultAddress
	default:
		if info, ok := devserver.Running(a.DataDir); ok {
			at.how, at.options.Address = "the `mcpx dev` on "+a.DataDir, info.Address
			return at, nil
		}
		at.how = fmt.Sprintf("the default: no --address, TEMPORAL_ADDRESS or profile names another, and no `mcpx dev` runs on %s", a.DataDir)
		at.options.Address = defaultAddress
	}
	return at, nil
}

// client connects to Temporal. Where nothing answers, the error says why it was looked for there.
func (a *App) client(ctx context.Context) (*sdk.Client, error) {
	at, err := a.temporal()
	if err != nil {
		return nil, err
	}
	c, err := sdk.Dial(ctx, at.options)
	return c, at.explain(err)
}

func (at temporalAt) explain(err error) error {
	if errors.Is(err, sdk.ErrUnavailable) {
		return fmt.Errorf("%w\nthe address is %s", err, at.how)
	}
	return err
}

// devName is the file in which a development stack says what it uses.
const devName = "dev.json"

// devInfo is what that file says.
type devInfo struct {
	Manifest string `json:"manifest"` // absolute path
}

func (a *App) writeDevInfo(info devInfo) error {
	text, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("write %s: %w", devName, err)
	}
	if err := os.MkdirAll(a.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return os.WriteFile(filepath.Join(a.DataDir, devName), append(text, '\n'), 0o600)
}

// devManifest is the manifest of the development stack that runs on the data directory, "" where none runs.
func (a *App) devManifest() string {
	if _, ok := devserver.Running(a.DataDir); !ok {
		return ""
	}
	var info devInfo
	text, err := os.ReadFile(filepath.Join(a.DataDir, devName))
	if err != nil || json.Unmarshal(text, &info) != nil {
		return ""
	}
	return info.Manifest
}

// findManifest is the file to read the manifest from: the flag's, else the one of this directory, else the one of a
// running development stack. The error wraps manifest.ErrNoManifest.
func (a *App) findManifest() (string, error) {
	if a.ManifestFile != "" {
		return a.ManifestFile, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("this directory: %w", err)
	}
	path, err := manifest.Find(dir)
	if errors.Is(err, manifest.ErrNoManifest) {
		if running := a.devManifest(); running != "" {
			return running, nil
		}
		return "", fmt.Errorf("%w: name one with --manifest", err)
	}
	return path, err
}

// manifest reads the manifest.
func (a *App) manifest() (*manifest.Manifest, error) {
	path, err := a.findManifest()
	if err != nil {
		return nil, err
	}
	m, err := manifest.Load(path)
	if err != nil && errors.Is(err, os.ErrNotExist) {
		return nil, usagef("%w", err)
	}
	return m, err
}
