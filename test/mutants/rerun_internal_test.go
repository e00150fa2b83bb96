package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAgain(t *testing.T) {
	mutants := func() []*mutant {
		return []*mutant{
			{file: "a/b.go", line: 7, function: "f", from: "x", to: "!x", outcome: survived, tests: []string{"a"}},
			{file: "a/b.go", line: 8, column: 2, function: "T.g", from: "x > 0", to: "x >= 0", outcome: unreached},
			{file: "a/b.go", line: 9, column: 2, function: "f", from: "y", to: "!y", outcome: killed},
		}
	}
	var former strings.Builder
	var r report
	r.add(&former, "a", mutants())
	file := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(file, []byte("mutants: 1 of 3 tests recorded\n"+former.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := readReported(file)
	if err != nil {
		t.Fatal(err)
	}
	moved := mutants()
	for _, one := range moved {
		one.line += 10
	}
	if left := told.only(moved); len(left) != 2 || left[0].from != "x" || left[1].from != "x > 0" {
		t.Errorf("tried again are %v", left)
	}
}

func TestAgainWithoutAReport(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(empty, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".none"} {
		if _, err := readReported(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: the error is %v", file, err)
		}
	}
}
