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

// asked is what a test wanted a golden file to have.
type asked struct{ test, text string }

// files are the golden files that this process has been asked for, by their absolute paths.
type files struct {
	mu  sync.Mutex
	all map[string]asked
}

var goldenFiles files

// note gives what the file was asked for before, if it was.
func (f *files) note(file, test, text string) (former asked, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	former, again = f.all[absolute(file)]
	if !again {
		if f.all == nil {
			f.all = map[string]asked{}
		}
		f.all[absolute(file)] = asked{test, text}
	}
	return former, again
}

// unasked are the files of the patterns that nobody has asked for. A pattern without files is one, too.
func (f *files) unasked(patterns []string) (stale []string, err error) {
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
			if _, ok := f.all[absolute(file)]; !ok {
				stale = append(stale, file)
			}
		}
	}
	slices.Sort(stale)
	return slices.Compact(stale), nil
}

func absolute(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return file
}

// Main runs the tests of a package, and fails if there are golden files that none of them has asked for, such as those
// of a test that has another name by now. The patterns are those of path/filepath.Glob, and say which files these are:
//
//	func TestMain(m *testing.M) { os.Exit(facadetest.Main(m, "testdata/*.golden")) }
//
// Nothing is said when only some tests are run, by -run, -skip or -short, nor when one has failed. A test that is
// skipped for another reason asks for no file: give its files another folder. Without a TestMain, golden files are
// compared all the same.
func Main(m *testing.M, patterns ...string) int { return finish(os.Stderr, m.Run, patterns) }

func finish(to io.Writer, run func() int, patterns []string) int {
	code := run()
	if code != 0 || partial() {
		return code
	}
	stale, err := goldenFiles.unasked(patterns)
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

// partial is true if not all tests were run.
func partial() bool {
	return testing.Short() || slices.ContainsFunc([]string{"run", "skip", "list"}, func(name string) bool {
		given := flag.Lookup("test." + name)
		return given != nil && given.Value.String() != ""
	})
}
