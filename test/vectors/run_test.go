package vectors_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestRunFile(t *testing.T) {
	path := written(t, `{"family": "essence", "cases": [
		{"name": "played", "input": {"body": {}}, "expected": 1},
		{"name": "skipped", "deviation": ["D-quirk"], "input": {"body": {}}, "expected": 1}]}`)
	more := filepath.Join(filepath.Dir(path), "more")
	if err := os.Mkdir(more, 0o700); err != nil {
		t.Fatal(err)
	}
	beside := `{"family": "essence", "cases": [{"name": "beside", "input": {"body": {}}, "expected": 1}]}`
	if err := os.WriteFile(filepath.Join(more, "essence.json"), []byte(beside), 0o600); err != nil {
		t.Fatal(err)
	}
	var played []string
	t.Run("of", func(t *testing.T) {
		vectors.RunFile(
			t, path, func(t *testing.T, _ vectors.Fields, _ vectors.Expected) { played = append(played, t.Name()) },
		)
	})
	if delta := cmp.Diff([]string{"TestRunFile/of/played", "TestRunFile/of/beside"}, played); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}

func TestPlaces(t *testing.T) {
	path := written(t, `{"family": "essence", "cases": [
		{"name": "one", "input": {"body": {"items": [{}, {"odd": 1}]}}, "expected": {"strange": 1}}]}`)
	vectors.RunFile(t, path, func(t *testing.T, in vectors.Fields, want vectors.Expected) {
		for place, look := range map[string]func(t testing.TB){
			`the key "odd" in input.body.items[1] of the family "essence"`: func(t testing.TB) {
				vectors.Known(t, in.Mapping("body").List("items")[1], "even")
			},
			`the key "strange" in expected of the family "essence"`: func(t testing.TB) {
				vectors.Known(t, want.Value)
			},
			`the key "elsewhere" in the family "essence"`: func(t testing.TB) {
				vectors.Known(t, map[string]any{"elsewhere": 1})
			},
		} {
			if got := failureOf(t, look); !strings.HasPrefix(got, "the harness does not know "+place) {
				t.Errorf("a gap of the harness says so, and where: got %q, want %s", got, place)
			}
		}
	})
}

// TestFailing fails on purpose if the environment says so: see TestFailuresStayApart.
func TestFailing(t *testing.T) {
	if os.Getenv("FAIL_ON_PURPOSE") == "" {
		t.Skip("FAIL_ON_PURPOSE is not set")
	}
	path := written(t, `{"family": "essence", "cases": [
		{"name": "panics", "input": {}, "expected": 1}, {"name": "panics-in-time", "input": {}, "expected": 1},
		{"name": "hangs", "input": {}, "expected": 1}, {"name": "odd", "input": {"odd": 1}, "expected": 1},
		{"name": "good", "input": {}, "expected": 1}]}`)
	vectors.RunFile(t, path, func(t *testing.T, in vectors.Fields, _ vectors.Expected) {
		switch name := filepath.Base(t.Name()); name {
		case "panics":
			panic("on purpose")
		case "panics-in-time":
			vectors.Bubble(t, func(*testing.T) { time.Sleep(time.Hour); panic("on purpose") })
		case "hangs":
			vectors.Bubble(t, func(*testing.T) { select {} })
		default:
			vectors.Known(t, in)
		}
	})
}

func TestFailuresStayApart(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailing$", "-test.v")
	command.Env = append(os.Environ(), "FAIL_ON_PURPOSE=1")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Errorf("what fails on purpose has not: %s", out)
	}
	for name, verdict := range map[string]string{
		"panics": "FAIL", "panics-in-time": "FAIL", "hangs": "FAIL", "odd": "FAIL", "good": "PASS",
	} {
		if !strings.Contains(string(out), "--- "+verdict+": TestFailing/"+name+" ") {
			t.Errorf("the case %s: want %s in\n%s", name, verdict, out)
		}
	}
}
