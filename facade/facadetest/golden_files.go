package facadetest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// comparedText is the text that a test has compared with a golden file.
type comparedText struct{ test, text string }

// goldenFileSet records the golden files that tests of this process have used, by absolute path: tests can change the
// working directory. Parallel tests use it at once.
type goldenFileSet struct {
	mu    sync.Mutex
	texts map[string]comparedText
}

var goldenFiles = goldenFileSet{texts: map[string]comparedText{}}

// recordText records the text for a file. If the file was used before, it returns the first text instead.
func (f *goldenFileSet) recordText(file, test, text string) (former comparedText, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	former, again = f.texts[absolutePath(file)]
	if !again {
		f.texts[absolutePath(file)] = comparedText{test, text}
	}
	return former, again
}

// unusedFiles returns the files that match the patterns and that no test has used. A pattern that matches nothing is an
// error, because it is probably misspelled.
func (f *goldenFileSet) unusedFiles(patterns []string) (stale []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("the pattern %q: %w", pattern, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("the pattern %q has no files", pattern)
		}
		for _, file := range found {
			if _, ok := f.texts[absolutePath(file)]; !ok {
				stale = append(stale, file)
			}
		}
	}
	// Several patterns can match the same file.
	slices.Sort(stale)
	return slices.Compact(stale), nil
}

// absolutePath returns the absolute path, or the path itself if the working directory is unknown.
func absolutePath(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return file
}

// Main runs the tests of a package, and fails if there are golden files that no test has used, such as those of a
// renamed test. The patterns, in the syntax of path/filepath.Glob, select these files:
//
//	func TestMain(m *testing.M) { os.Exit(facadetest.Main(m, "testdata/*.golden")) }
//
// Main does not check the files if only some tests run, by -run, -skip or -short, or if a test has failed. A test that
// is skipped for another reason uses no file: keep its files in another folder. Without a TestMain, Golden still
// compares its files.
func Main(m *testing.M, patterns ...string) int { return runAndCheckFiles(os.Stderr, m.Run, patterns) }

// runAndCheckFiles implements Main with a given writer and test runner, so that it can be tested. Unused files change a
// successful exit code to 1.
func runAndCheckFiles(to io.Writer, run func() int, patterns []string) int {
	code := run()
	if code != 0 || isPartialRun() {
		return code
	}
	stale, err := goldenFiles.unusedFiles(patterns)
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(to, "facadetest.Main: %v\n", err)
	case len(stale) > 0:
		_, _ = fmt.Fprintf(to, "facadetest.Main: no test has asked for these golden files; delete them: %v\n", stale)
	default:
		return code
	}
	return 1
}

// isPartialRun reports whether the flags of the test binary exclude some tests.
func isPartialRun() bool {
	return testing.Short() || slices.ContainsFunc([]string{"run", "skip", "list"}, func(name string) bool {
		given := flag.Lookup("test." + name)
		return given != nil && given.Value.String() != ""
	})
}
