package devserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const infoName = "temporal.json"

// Info is what the address file of a data directory says about the server that runs there.
type Info struct {
	Address string `json:"address"`      // gRPC, host:port
	UI      string `json:"ui,omitempty"` // URL of the web UI
	PID     int    `json:"pid"`          // of the server
	Owner   int    `json:"owner"`        // process id of the program that started it
}

// Running returns the server that runs on a data directory. There is none when ok is false: the directory's lock is
// free, whatever a file left by a crash may say.
func Running(dataDir string) (info Info, ok bool) {
	if !locked(dataDir) {
		return Info{}, false
	}
	info, err := readInfo(dataDir)
	return info, err == nil
}

// write replaces the address file in one step, so that no reader sees half of it.
func (i Info) write(dataDir string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the address of the Temporal development server: %w", err)
		}
	}()
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(dataDir, infoName+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(dataDir, infoName))
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

func readInfo(dataDir string) (info Info, err error) {
	text, err := os.ReadFile(filepath.Join(dataDir, infoName))
	if err != nil {
		return Info{}, err
	}
	err = json.Unmarshal(text, &info)
	return info, err
}

// removeInfo need not succeed: Running judges by the lock, so a file that stays behind misleads nobody.
func removeInfo(dataDir string) { _ = os.Remove(filepath.Join(dataDir, infoName)) }
