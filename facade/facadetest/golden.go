package facadetest

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
)

// updateFlag has a prefix, as flags belong to the whole test binary: projects have an -update of their own.
var updateFlag = flag.Bool(
	"facadetest.update", false, "write the golden files of facadetest.Golden; or set "+updateVariable+"=1",
)

// updateVariable is for go test ./..., where packages that do not import the kit refuse the flag.
const updateVariable = "FACADETEST_UPDATE"

// Golden compares what the test got with a file, and fails the test with a unified diff if they differ. With the flag
// -facadetest.update, or FACADETEST_UPDATE=1 in the environment, it writes the file instead. The path is relative to
// the folder of the package:
//
//	facadetest.Golden(t, "testdata/orders.golden", r.Calls(), &databases)
//
// Parts are written one after the other:
//
//   - []HandlerCall, of [Runner.Calls], one line for each. In a bubble of testing/synctest, each has the time since the
//     operator was ready, or was called for an object before. Times are in whole seconds, as starting takes some tenths
//     more or less. What begins in the same second has no fixed order, so it is sorted by object and handler; calls for
//     the changes of one object stay in their order. In real time, where nothing of this can be compared, lines have no
//     times, and all are sorted in this way.
//   - []Write, of [Runner.Writes], sorted alike, with their bodies. Kubernetes events, keep-alives and leases are left
//     out.
//   - objects and lists of them, typed or not, as YAML, sorted by namespace and name;
//   - an [Outcome] or a [Verdict]; a string as it is; anything else as YAML of its JSON.
//
// What differs from run to run is replaced or left out: uids, times, resourceVersions, managedFields, and made-up ends
// of generated names.
//
// # Errors
//
// A file that is not there fails the test, with the command that makes it. So do two different texts for one file in
// one process, also while it is written: run a test that is new with -count 10. A failed test writes no file. For files
// that no test asks for any more, see [Main].
func Golden(t testing.TB, file string, parts ...any) {
	t.Helper()
	got, err := textOf(parts)
	if err != nil {
		t.Fatalf("facadetest: the golden file %s: %v", file, err)
	}
	if former, again := goldenFiles.note(file, t.Name(), got); again && former.text != got {
		t.Errorf("the golden file %s was asked for twice, with different texts: by %s, then by %s. Give each test a "+
			"file of its own; of one test, find out what has no fixed order:\n%s",
			file, former.test, t.Name(), difference(former.text, got))
		return
	}
	if updating() {
		update(t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	switch wanted := strings.ReplaceAll(string(want), "\r\n", "\n"); {
	case errors.Is(err, fs.ErrNotExist):
		t.Errorf("there is no golden file %s. If this is right, %s:\n\n%s", file, command(t), got)
	case err != nil:
		t.Errorf("reading the golden file: %v", err)
	case wanted != got:
		t.Errorf("the test got something else than the golden file %s. If this is right, %s:\n%s",
			file, command(t), difference(wanted, got))
	}
}

func updating() bool {
	switch os.Getenv(updateVariable) {
	case "":
		return *updateFlag
	case "0", "false":
		return false
	default:
		return true
	}
}

// update writes the file, unless it is as it should be.
func update(t testing.TB, file, text string) {
	t.Helper()
	if t.Failed() {
		t.Logf("the golden file %s stays as it is, as the test has failed", file)
		return
	}
	if former, err := os.ReadFile(file); err == nil && string(former) == text {
		return
	}
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		t.Errorf("writing the golden file: %v", err)
		return
	}
	t.Logf("wrote the golden file %s", file)
}

// command is how to make the file, in the folder where the test runs.
func command(t testing.TB) string {
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	folder, err := os.Getwd()
	if err != nil {
		folder = "."
	}
	const text = "run\n\n\tcd %s && go test -run '%s' . -facadetest.update\n\n(%s=1 go test ./... writes all of them)"
	return fmt.Sprintf(text, folder, strings.Join(pattern, "/"), updateVariable)
}

func linesOf(text string) []string { return difflib.SplitLines(strings.TrimSuffix(text, "\n")) }

// difference is a unified diff, not longer than somebody reads.
func difference(want, got string) string {
	const most = 60
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: linesOf(want), B: linesOf(got), FromFile: "golden", ToFile: "got", Context: 3,
	})
	if err != nil { // which only a writer would give
		return err.Error()
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + fmt.Sprintf("... and %d more lines\n", len(lines)-most)
}
