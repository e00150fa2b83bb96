package main

import (
	"bufio"
	"bytes"
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lines contains line numbers by file. A file from which lines were only removed has an empty set.
type lines map[string]map[int]bool

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// changedLines returns the lines that differ from a commit, including uncommitted changes.
func (m module) changedLines(ctx context.Context, since string) (lines, error) {
	out, err := m.output(
		ctx, "git", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/",
		"--relative", since, "--", "*.go", ":!*_test.go",
	)
	if err != nil {
		return nil, err
	}
	return parseDiff(out), nil
}

func parseDiff(diff []byte) lines {
	changed := lines{}
	file := ""
	for scanner := bufio.NewScanner(bytes.NewReader(diff)); scanner.Scan(); {
		if name, is := strings.CutPrefix(scanner.Text(), "+++ b/"); is {
			file = name
			continue
		}
		found := hunk.FindStringSubmatch(scanner.Text())
		if found == nil {
			continue
		}
		first, _ := strconv.Atoi(found[1])
		count := 1
		if found[2] != "" {
			count, _ = strconv.Atoi(found[2])
		}
		if changed[file] == nil {
			changed[file] = map[int]bool{}
		}
		for i := range count {
			changed[file][first+i] = true
		}
	}
	return changed
}

// touch says whether a file right in a folder has changed.
func (l lines) touch(dir string) bool {
	for file := range l {
		if path.Dir(file) == dir {
			return true
		}
	}
	return false
}

// only returns the changes on these lines.
func (l lines) only(mutants []*mutant) []*mutant {
	return slices.DeleteFunc(mutants, func(m *mutant) bool { return !l[m.file][m.line] })
}
