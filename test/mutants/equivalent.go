package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// equivalents are the changes that no test can notice. In the file each has the line that reports print for survivors,
// without the numbers of line and column, and then its reason, on lines that begin with a space:
//
//	storage/diff/path.go: Path.String: `i > 0` to `i >= 0`
//	    The first one has index 1.
//
// It covers all such changes in that function.
type equivalents []*equivalent

type equivalent struct {
	file, change, reason string
	isChecked, isMatched bool
}

func readEquivalents(path string) (equivalents, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of equivalent changes: %w", err)
	}
	defer func() { _ = file.Close() }()
	var all equivalents
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case text != strings.TrimRight(lines.Text(), " "):
			if len(all) == 0 {
				return nil, fmt.Errorf("%s:%d: a reason without a change above it", path, number)
			}
			all[len(all)-1].reason += text
		default:
			file, change, is := strings.Cut(text, ": ")
			if !is {
				return nil, fmt.Errorf("%s:%d: no change of the form FILE: FUNCTION: `FROM` to `TO`", path, number)
			}
			all = append(all, &equivalent{file: file, change: change})
		}
	}
	for _, one := range all {
		if one.reason == "" {
			return nil, fmt.Errorf("%s: %s: %s has no reason below it", path, one.file, one.change)
		}
	}
	return all, lines.Err()
}

// without returns the changes that are not listed.
func (e equivalents) without(mutants []*mutant) []*mutant {
	return slices.DeleteFunc(mutants, func(m *mutant) bool {
		listed := false
		for _, one := range e {
			if one.file != m.file {
				continue
			}
			one.isChecked = true
			if one.change == m.change() {
				one.isMatched, listed = true, true
			}
		}
		return listed
	})
}

// stale are the listed changes that their file does not have, or whose file is not there any more; of files that were
// not looked at nothing else is known.
func (e equivalents) stale(root string) []string {
	var stale []string
	for _, one := range e {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(one.file)))
		if one.isChecked && !one.isMatched || errors.Is(err, fs.ErrNotExist) {
			stale = append(stale, one.file+": "+one.change)
		}
	}
	return stale
}
