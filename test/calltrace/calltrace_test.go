package calltrace_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/calltrace"
	"github.com/kopf-runtime/kopf-runtime/test/calltrace/record"
)

var update = flag.Bool("update", false, "rewrite testdata from the recorded calls")

const golden = "testdata/creation.txt"

// maxFiles is how many files of the engine one created object may pass through. Three of them only measure, three bring
// it in and keep it, four look for the control annotations and record failed handlers, and one sends patches. Four
// declare types for other files, so that these do not use each other.
const maxFiles = 54

// TestCreation compares the functions that one created object with one handler passes through with testdata and with
// the tour in the documentation of package reconcilers, so that a longer path is seen in review.
func TestCreation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	is := calltrace.Summarize(play(t))
	if *update {
		if err := os.WriteFile(golden, []byte(is.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(is.String(), "\n")); d != "" {
		t.Errorf("the way of one created object has changed; go test ./test/calltrace -update writes it down "+
			"(-want, +got):\n%s", d)
	}
	if files := is.EngineFiles(); files > maxFiles {
		t.Errorf("one created object passes through %d files of the engine, more than %d", files, maxFiles)
	}
	tour, err := os.ReadFile("../../reconcilers/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, mistake := range is.Mistakes(string(tour)) {
		t.Errorf("the tour in reconcilers/doc.go: %s", mistake)
	}
}

func TestMistakesOfATour(t *testing.T) {
	is := calltrace.Summarize([]record.Call{
		{File: "reconcilers/a/a.go", Function: "F"}, {File: "reconcilers/b/b.go", Function: "T.M"},
	})
	for name, c := range map[string]struct {
		reason, tour string
		want         []string
	}{
		"right": {"all are called, in this order", "//\ta.F    does\n//\tb.T.M  makes\n", nil},
		"wrong order": {
			"the tour is one of time", "//\tb.T.M  makes\n//\ta.F    does\n",
			[]string{"a.F is called before b.T.M"},
		},
		"unknown": {"it may have been renamed", "//\ta.G  did\n", []string{"a.G is not called"}},
		"empty":   {"it says nothing", "// Package x is.\n", []string{"it names no function"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, is.Mistakes(c.tour)); d != "" {
				t.Errorf("%s (-want, +got):\n%s", c.reason, d)
			}
		})
	}
}

// play builds the story with a probe in every function, and gives the calls.
func play(t *testing.T) []record.Call {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	overlay, err := calltrace.Overlay(root, into)
	if err != nil {
		t.Fatal(err)
	}
	binary, calls := filepath.Join(into, "creation.test"), filepath.Join(into, "calls.json")
	run(t, "go", "test", "-c", "-overlay", overlay, "-o", binary, "./creation")
	t.Setenv("CALLTRACE", calls)
	run(t, binary)
	data, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	var all []record.Call
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no calls were recorded: the build did not take the probes")
	}
	return all
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
