package release_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestPlatforms builds an operator for each platform that releases support. A program for another platform cannot be
// started here, so its header is checked.
func TestPlatforms(t *testing.T) {
	for platform, magic := range map[string]string{
		"linux/amd64": "\x7fELF", "linux/arm64": "\x7fELF", "darwin/arm64": "\xcf\xfa\xed\xfe", "windows/amd64": "MZ",
	} {
		t.Run(platform, func(t *testing.T) {
			system, processor, _ := strings.Cut(platform, "/")
			program := build(t, copyProject(t), "GOOS="+system, "GOARCH="+processor)
			if !bytes.HasPrefix(program, []byte(magic)) {
				t.Errorf("the program begins with %q, want %q", program[:4], magic)
			}
		})
	}
}

// TestReproducibleBuilds requires that two builds of the same sources in different folders give the same bytes, so that
// anybody can check what a released program was built from.
func TestReproducibleBuilds(t *testing.T) {
	target := []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
	one, other := build(t, copyProject(t), target...), build(t, copyProject(t), target...)
	if !bytes.Equal(one, other) {
		t.Errorf("two builds must be identical, got %d and %d bytes", len(one), len(other))
	}
	changed := copyProject(t)
	text := readFile(t, filepath.Join(changed, "main.go"))
	writeFile(t, filepath.Join(changed, "main.go"), strings.ReplaceAll(text, "Published the page", "Published a page"))
	if bytes.Equal(one, build(t, changed, target...)) {
		t.Error("the build of other sources must differ")
	}
}

// build builds the project as the Dockerfile does, and returns the program.
func build(t *testing.T, project string, environment ...string) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator")
	buildProgram(t, project, program, environment...)
	return []byte(readFile(t, program))
}

// buildProgram builds the project into a file.
func buildProgram(t *testing.T, project, program string, environment ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, ".")
	cmd.Dir = project
	cmd.Env = append(os.Environ(), append(environment, "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building for %s: %v\n%s", environment, err, output)
	}
}
