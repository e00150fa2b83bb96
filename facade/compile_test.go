package kopf_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestOptionsAreCheckedByTheCompiler shows that the compiler rejects invalid options with a helpful message and accepts valid ones.
func TestOptionsAreCheckedByTheCompiler(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const folder, file = "./testdata/compile", "testdata/compile/compile.go"
	// -e reports all errors instead of ten.
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, folder)
	build.Env = append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	if err == nil {
		t.Fatal("invalid options do not compile")
	}
	said := map[int][]string{}
	for line := range strings.Lines(string(out)) {
		var number int
		if m := regexp.MustCompile(`compile\.go:(\d+):\d+: (.*)`).FindStringSubmatch(line); m != nil {
			_, _ = fmt.Sscan(m[1], &number)
			said[number] = append(said[number], m[2])
		}
	}
	if len(said) == 0 {
		t.Fatalf("the build failed without an error of the compiler: %s", out)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(source))
	for number := 1; lines.Scan(); number++ {
		got := strings.Join(said[number], "; ")
		wanted := regexp.MustCompile(`// want "(.*)"`).FindStringSubmatch(lines.Text())
		switch {
		case wanted == nil && got != "":
			t.Errorf("%s:%d must compile, but: %s", file, number, got)
		case wanted != nil && got == "":
			t.Errorf("%s:%d must not compile: %s", file, number, strings.TrimSpace(lines.Text()))
		case wanted != nil && !strings.Contains(got, wanted[1]):
			t.Errorf("%s:%d: want %q in the errors of the compiler, got: %s", file, number, wanted[1], got)
		}
	}
}
