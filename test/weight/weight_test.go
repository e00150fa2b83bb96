package weight_test

import (
	"debug/buildinfo"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits of a program beyond controller-runtime alone. A higher limit needs a reason, here and in
// docs/dependencies.md. A third of the bytes is for debuggers; nearly all of the rest is our own code, a quarter of it
// the command line and its commands.
const (
	maxLines   = 8
	maxModules = 6
	maxBytes   = 12 << 20
)

const (
	bareProgram    = "./bare"
	minimalProgram = "../../examples/01-minimal"
	modulePath     = "github.com/kopf-runtime/kopf-runtime"
)

// The lines are those of a tidy go.mod: one for this module, one for each module that is not there yet, on whatever
// platform it is needed.
func TestLines(t *testing.T) {
	lines := difference(neededModules(t, minimalProgram), neededModules(t, bareProgram))
	t.Logf(
		"%d lines of go.mod beyond those for controller-runtime: %s", 1+len(lines),
		strings.Join(append(lines, modulePath), ", "),
	)
	if 1+len(lines) > maxLines {
		t.Errorf("%d lines, not more than %d", 1+len(lines), maxLines)
	}
}

func TestProgram(t *testing.T) {
	less, more := build(t, bareProgram), build(t, minimalProgram)
	modules := difference(linkedPackages(t, more), linkedPackages(t, less))
	t.Logf(
		"%d modules are linked beyond controller-runtime's, and this one: %s", len(modules),
		strings.Join(modules, ", "),
	)
	if len(modules) > maxModules {
		t.Errorf("%d modules, not more than %d", len(modules), maxModules)
	}
	bytes := binarySize(t, more) - binarySize(t, less)
	t.Logf(
		"%.1f MiB are added to the %.1f of a program with controller-runtime alone", toMiB(bytes),
		toMiB(binarySize(t, less)),
	)
	if bytes > maxBytes {
		t.Errorf("%d bytes, not more than %d", bytes, maxBytes)
	}
}

// TestNothingIsRaised shows that a project with controller-runtime in the version of go.mod keeps all its other
// versions, except for the matching Kubernetes libraries.
func TestNothingIsRaised(t *testing.T) {
	asked := map[string]bool{} // by others than us
	var ours []string
	for _, edge := range run(t, "go", "mod", "graph") {
		who, what, _ := strings.Cut(edge, " ")
		if who == modulePath {
			ours = append(ours, what)
			continue
		}
		asked[what] = true
	}
	if len(ours) < 20 {
		t.Fatalf("only %d requirements were found: the check below would pass for nothing", len(ours))
	}
	for _, what := range ours {
		module, _, _ := strings.Cut(what, "@")
		if !asked[what] && module != "sigs.k8s.io/controller-runtime" && module != "go" && module != "toolchain" {
			t.Errorf("go.mod requires %s, but no dependency requires that version: lower it", what)
		}
	}
}

// neededModules gives the modules, but ours, of which the program needs packages.
func neededModules(t *testing.T, program string) map[string]bool {
	t.Helper()
	modules := map[string]bool{}
	for _, platform := range []string{"linux", "windows"} {
		t.Setenv("GOOS", platform)
		for _, path := range run(t, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", program) {
			modules[path] = true
		}
	}
	delete(modules, modulePath)
	delete(modules, "")
	return modules
}

func build(t *testing.T, program string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "program")
	run(t, "go", "build", "-o", file, program)
	return file
}

func linkedPackages(t *testing.T, file string) map[string]bool {
	t.Helper()
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatalf("reading the modules of a program: %v", err)
	}
	modules := map[string]bool{}
	for _, dep := range info.Deps {
		modules[dep.Path] = true
	}
	return modules
}

func binarySize(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatalf("measuring a program: %v", err)
	}
	return info.Size()
}

func toMiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func difference(more, less map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(more)), func(path string) bool { return less[path] })
}

// run gives the lines that a command writes.
func run(t *testing.T, name string, args ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("running %s %s: %v", name, strings.Join(args, " "), err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
