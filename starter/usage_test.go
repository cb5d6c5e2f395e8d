package starter_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/starter"
	"github.com/mcpx-go/mcpx/starter/screen"
)

func TestWrongUsageIsExplainedWithCode2(t *testing.T) {
	manifest := examplesFile(t)
	for _, test := range []struct {
		name string
		args []string
		says []string
	}{
		{"unknown command", []string{"strat"}, []string{`no command "strat"`, "did you mean start?"}},
		{"far from any command", []string{"frobnicate"}, []string{`no command "frobnicate"`, "mcpx help"}},
		{"a command that does not exist yet", []string{"recover", "x"}, []string{`no command "recover"`}},
		{"unknown flag", []string{"list", "--stat=X"}, []string{"unknown flag: --stat", "did you mean --state?"}},
		{"bad flag value", []string{"list", "--limit", "many"}, []string{"--limit"}},
		{"nothing to list", []string{"list", "--limit", "0"}, []string{"--limit 0"}},
		{"unknown state", []string{"list", "--state", "comitted"}, []string{"did you mean COMMITTED?"}},
		{"missing argument", []string{"status"}, []string{"needs ID", "status ID"}},
		{"missing arguments", []string{"resolve"}, []string{"needs ID and STEP"}},
		{"too many arguments", []string{"status", "a", "b"}, []string{`what to do with "b"`}},
		{"unknown plan", []string{"plan", "provision-workspac", "--manifest", manifest}, []string{`did you mean "provision-workspace"?`}},
		{"unknown plan to start", []string{"start", "publish", "--manifest", manifest}, []string{`unknown plan "publish"`}},
		{"missing input", []string{"plan", "provision-workspace", "--manifest", manifest}, []string{"/workspace is missing"}},
		{"misspelt input", []string{"plan", "provision-workspace", "--manifest", manifest, "-i", "worksapce=acme"}, []string{`did you mean "workspace"?`}},
		{"input of the wrong type", []string{"plan", "provision-workspace", "--manifest", manifest, "-i", "workspace=acme", "-i", "size_gb=big"}, []string{"size_gb"}},
		{"input without a value", []string{"plan", "provision-workspace", "--manifest", manifest, "-i", "workspace"}, []string{"want key=value"}},
		{"input twice", []string{"plan", "provision-workspace", "--manifest", manifest, "-i", "workspace=a", "-i", "workspace=b"}, []string{"given twice"}},
		{"input file that is not there", []string{"plan", "provision-workspace", "--manifest", manifest, "--input", "none.json"}, []string{"none.json"}},
		{"manifest that is not there", []string{"plan", "x", "--manifest", "none.yaml"}, []string{"none.yaml"}},
		{"no resolution", []string{"resolve", "id", "step", "--reason", "r"}, []string{"--as"}},
		{"misspelt resolution", []string{"resolve", "id", "step", "--as", "comitted", "--reason", "r"}, []string{"did you mean committed?"}},
		{"resolution without a reason", []string{"resolve", "id", "step", "--as", "absent"}, []string{"--reason WHY"}},
		{"result of something else", []string{"resolve", "id", "step", "--as", "absent", "--reason", "r", "--result", "{}"}, []string{"--as committed alone"}},
		{"result that is no JSON", []string{"resolve", "id", "step", "--as", "committed", "--reason", "r", "--result", "{"}, []string{"--result"}},
		{"nobody decides", []string{"abort", "id", "--by", " "}, []string{"--by WHO"}},
		{"empty key", []string{"start", "provision-workspace", "--manifest", manifest, "-i", "workspace=acme", "--id", ""}, []string{"--id is empty"}},
		{"key with a control character", []string{"start", "provision-workspace", "--manifest", manifest, "-i", "workspace=acme", "--id", "a\nb"}, []string{"--id", "U+000A"}},
		{"key that is too long", []string{"start", "provision-workspace", "--manifest", manifest, "-i", "workspace=acme", "--id", strings.Repeat("k", 501)}, []string{"--id", "501 bytes"}},
		{"empty digest", []string{"approve", "id", "--yes", "--digest", ""}, []string{"--digest is empty"}},
		{"empty digest of what is declined", []string{"reject", "id", "--digest", ""}, []string{"--digest is empty"}},
		{"empty result", []string{"resolve", "id", "step", "--as", "committed", "--reason", "r", "--result", ""}, []string{"--result is empty"}},
		{"empty name of an input file", []string{"plan", "provision-workspace", "--manifest", manifest, "--input", ""}, []string{"--input is empty"}},
		{"input that is not UTF-8", []string{"plan", "provision-workspace", "--manifest", manifest, "-i", "workspace=a\xffb"}, []string{`input "workspace"`, "not UTF-8"}},
		{"unknown demonstration", []string{"demo", "workspac"}, []string{"did you mean workspace?"}},
		{"port that is none", []string{"dev", "--port", "70000", "--manifest", manifest}, []string{"--port 70000"}},
		{"unknown profile", []string{"list", "--profile", "nowhere"}, []string{"profile"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := mcpx(t, test.args...).requireCode(t, 2)
			require.Empty(t, r.out, "messages go to standard error")
			for _, text := range test.says {
				require.Contains(t, r.err, text)
			}
		})
	}
}

func TestABrokenManifestIsShownWithPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpx.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nservrs: {}\ntools:\n  a/b: {risc: critical}\n"), 0o600))
	r := mcpx(t, "plan", "x", "--manifest", file).requireCode(t, 2)
	require.Contains(t, r.err, file+":2:1")
	require.Contains(t, r.err, "\n  "+file+":4:", "every problem, indented")
	r = mcpx(t, "doctor", "--manifest", file, "--address", "127.0.0.1:1").requireCode(t, 1)
	require.Contains(t, r.out, "servrs")
}

func TestNoManifestIsSaidWithWhatWasTried(t *testing.T) {
	t.Chdir(t.TempDir())
	r := mcpx(t, "plan", "x").requireCode(t, 2)
	require.Contains(t, r.err, "mcpx.yaml")
	require.Contains(t, r.err, "--manifest")
}

func TestTheManifestOfTheEnvironmentIsUsed(t *testing.T) {
	t.Setenv("MCPX_MANIFEST", examplesFile(t))
	t.Chdir(t.TempDir())
	mcpx(t, "plan", "provision-workspace", "-i", "workspace=acme").requireCode(t, 0)
}

func TestTheManifestOfTheDirectoryIsFound(t *testing.T) {
	t.Chdir("..")
	mcpx(t, "plan", "provision-workspace", "-i", "workspace=acme").requireCode(t, 0)
}

func TestWhereTemporalWasLookedForIsSaid(t *testing.T) {
	t.Run("flag", func(t *testing.T) {
		r := mcpx(t, "list", "--address", "127.0.0.1:1").requireCode(t, 1)
		require.Contains(t, r.err, "127.0.0.1:1")
		require.Contains(t, r.err, "mcpx dev")
		require.Contains(t, r.err, "the address is --address")
	})
	t.Run("environment", func(t *testing.T) {
		t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
		r := mcpx(t, "list").requireCode(t, 1)
		require.Contains(t, r.err, "the address is TEMPORAL_ADDRESS")
	})
	t.Run("profile", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "temporal.toml")
		require.NoError(t, os.WriteFile(file, []byte("[profile.far]\naddress = \"127.0.0.1:1\"\n"), 0o600))
		t.Setenv("TEMPORAL_CONFIG_FILE", file)
		r := mcpx(t, "list", "--profile", "far").requireCode(t, 1)
		require.Contains(t, r.err, "a profile of temporal.toml")
	})
}

func TestHelpListsWhatExistsAndNothingElse(t *testing.T) {
	r := mcpx(t).requireCode(t, 0)
	for _, command := range []string{"dev", "demo", "worker", "plan", "start", "list", "status", "approve", "reject", "resume", "abort", "resolve", "receipt", "doctor", "version"} {
		require.Regexp(t, `(?m)^  `+command+` `, r.out)
	}
	for _, command := range []string{"example", "recover", "compensate", "wrap", "bridge", "console", "runner", "draft", "keys", "completion"} {
		require.NotRegexp(t, `(?m)^  `+command+` `, r.out)
	}
}

func TestVersion(t *testing.T) {
	require.Regexp(t, `^mcpx \S+ \(go`, mcpx(t, "version").requireCode(t, 0).out)
	var info struct{ Go, TemporalSDK string }
	mcpx(t, "version", "--json").requireCode(t, 0).decode(t, &info)
	require.NotEmpty(t, info.TemporalSDK)
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAResultThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{
		{"version"}, {"version", "--json"}, {"help"}, {"plan", "provision-workspace", "-i", "workspace=acme", "--manifest", examplesFile(t)},
	} {
		var messages strings.Builder
		app := starter.New(examplesText(t), strings.NewReader(""), screen.Plainly(full{}, 0), screen.Plainly(&messages, 0), everything...)
		require.Equal(t, 1, app.Run(t.Context(), args), args)
		require.Contains(t, messages.String(), "write the result: no space left on device")
	}
}
