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

// updateFlag has a prefix because flags belong to the whole test binary, and many projects define -update themselves.
var updateFlag = flag.Bool(
	"facadetest.update", false, "write the golden files of facadetest.Golden; or set "+updateVariable+"=1",
)

// updateVariable is an alternative for go test ./...: packages that do not import the kit reject the flag.
const updateVariable = "FACADETEST_UPDATE"

// Golden compares the parts with a file and fails the test with a unified diff if they differ. With the flag
// -facadetest.update, or FACADETEST_UPDATE=1 in the environment, it writes the file instead. The path is relative to
// the folder of the package:
//
//	facadetest.Golden(t, "testdata/orders.golden", r.Calls(), &databases)
//
// The file has the parts in their order:
//
//   - []HandlerCall, from [Runner.Calls], one line for each. In a bubble of testing/synctest, each line has the time
//     since the operator became ready, or since an earlier call for an object. Times are in whole seconds, because the
//     duration of the start varies by tenths of a second. Calls that start in the same second have no fixed order, so
//     Golden sorts them by object and handler; calls for changes of one object stay in their order. In real time, no
//     times can be compared: lines have no times, and all are sorted in this way.
//   - []Write, from [Runner.Writes], sorted in the same way, with their bodies. Kubernetes events, keep-alives and
//     leases are left out.
//   - Objects and lists of objects, typed or not, as YAML, sorted by namespace and name.
//   - An [Outcome] or a [Verdict], as YAML of its fields. A string unchanged. Any other value as YAML of its JSON.
//
// Golden replaces or leaves out values that differ from run to run: uids, times, resourceVersions, managedFields, and
// the random suffixes of generated names.
//
// # Errors
//
// A missing file fails the test, with the command that creates it. Two different texts for one file in one process also
// fail the test, even while the file is written: run a new test with -count 10. A failed test writes no file. To find
// files that no test uses any more, see [Main].
func Golden(t testing.TB, file string, parts ...any) {
	t.Helper()
	got, err := formatParts(parts)
	if err != nil {
		t.Fatalf("facadetest: the golden file %s: %v", file, err)
	}
	if former, again := goldenFiles.recordText(file, t.Name(), got); again && former.text != got {
		t.Errorf("the golden file %s was asked for twice, with different texts: by %s, then by %s. Give each test a "+
			"file of its own; of one test, find out what has no fixed order:\n%s",
			file, former.test, t.Name(), shortUnifiedDiff(former.text, got))
		return
	}
	// A repeated text is checked before this step: an unstable test must not write its file.
	if isUpdateRun() {
		writeGoldenFile(t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	// Git may check out text files with CRLF on Windows.
	switch wanted := strings.ReplaceAll(string(want), "\r\n", "\n"); {
	case errors.Is(err, fs.ErrNotExist):
		t.Errorf("there is no golden file %s. If this is right, %s:\n\n%s", file, updateCommand(t), got)
	case err != nil:
		t.Errorf("reading the golden file: %v", err)
	case wanted != got:
		t.Errorf("the test got something else than the golden file %s. If this is right, %s:\n%s",
			file, updateCommand(t), shortUnifiedDiff(wanted, got))
	}
}

// isUpdateRun reports whether this run writes golden files. The variable takes precedence over the flag.
func isUpdateRun() bool {
	switch os.Getenv(updateVariable) {
	case "":
		return *updateFlag
	case "0", "false":
		return false
	default:
		return true
	}
}

// writeGoldenFile writes the file, unless it has this content already.
func writeGoldenFile(t testing.TB, file, text string) {
	t.Helper()
	// The text of a failed test may be incomplete.
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

// updateCommand returns the shell command that writes the files of this test, run in its folder.
func updateCommand(t testing.TB) string {
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

// splitLines splits a text for the diff. The final newline does not add an empty line.
func splitLines(text string) []string { return difflib.SplitLines(strings.TrimSuffix(text, "\n")) }

// shortUnifiedDiff returns a unified diff, cut after a number of lines that can be read in a terminal.
func shortUnifiedDiff(want, got string) string {
	const most = 60
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: splitLines(want), B: splitLines(got), FromFile: "golden", ToFile: "got", Context: 3,
	})
	if err != nil { // only an io.Writer can fail
		return err.Error()
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + fmt.Sprintf("... and %d more lines\n", len(lines)-most)
}
