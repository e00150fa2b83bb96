package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// lineSet is a set of line numbers. A nil set contains all lines.
type lineSet map[int]bool

func (s lineSet) contains(line int) bool { return s == nil || s[line] }

// linesToCheck returns the files to check and their lines: all of them, or those that differ from the merge base with
// base. Files that git does not track yet count as changed.
func linesToCheck(root, base string) (map[string]lineSet, error) {
	files := map[string]lineSet{}
	add := func(list []byte) {
		for file := range strings.Lines(string(list)) {
			if file = strings.TrimSpace(file); isChecked(file) {
				files[file] = nil
			}
		}
	}
	untracked, err := git(root, "ls-files", "--others", "--exclude-standard", "--", "*.md", "*.go")
	if err != nil {
		return nil, err
	}
	add(untracked)
	if base == "" {
		tracked, err := git(root, "ls-files", "--", "*.md", "*.go")
		add(tracked)
		return files, err
	}
	from, err := git(root, "merge-base", base, "HEAD")
	if err != nil {
		return nil, fmt.Errorf("finding the merge base with %s (fetch it, or set BASE): %w", base, err)
	}
	diff, err := git(root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--diff-filter=d",
		strings.TrimSpace(string(from)), "--", "*.md", "*.go")
	if err != nil {
		return nil, err
	}
	for file, lines := range changedLines(diff) {
		if isChecked(file) {
			files[file] = lines
		}
	}
	return files, nil
}

// isChecked excludes data of tests, which may be wrong on purpose.
func isChecked(file string) bool {
	return file != "" && !strings.Contains("/"+file, "/testdata/")
}

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// changedLines returns the lines that a diff without context adds or changes, by file.
func changedLines(diff []byte) map[string]lineSet {
	files, current := map[string]lineSet{}, lineSet{}
	lines := bufio.NewScanner(bytes.NewReader(diff))
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		line := lines.Text()
		if name, found := strings.CutPrefix(line, "+++ b/"); found {
			current = lineSet{}
			files[name] = current
		}
		if m := hunk.FindStringSubmatch(line); m != nil {
			first, _ := strconv.Atoi(m[1])
			count := 1
			if m[2] != "" {
				count, _ = strconv.Atoi(m[2])
			}
			for n := range count {
				current[first+n] = true
			}
		}
	}
	return files
}

func git(root string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-C", root, "-c", "core.quotepath=off"}, args...)...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(problem.String()))
	}
	return out, nil
}
