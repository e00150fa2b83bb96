package release_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// permissive are the licences that programs with kopf-runtime may contain: their only condition is that their text is
// kept. The detector calls the licence of the Go project BSD-Source-Code, and that of gopkg.in/inf.v0 0BSD.
var permissive = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-Source-Code", "0BSD", "ISC", "MIT"}

// component is one module in a list of modules in the format of CycloneDX.
type component struct {
	Name, Version string
	Evidence      struct {
		Licenses []struct{ License struct{ ID, Name string } }
	}
}

// TestModules lists the modules of an operator with their licences, as a release does. The list must be complete, and
// all licences must be permissive.
func TestModules(t *testing.T) {
	program := filepath.Join(t.TempDir(), "operator")
	buildProgram(t, copyProject(t), program, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	listed := listModules(t, program)
	var linked []string
	output, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(output)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "dep" && words[1] != module {
			linked = append(linked, words[1])
		}
	}
	for _, name := range linked {
		if !slices.ContainsFunc(listed, func(c component) bool { return c.Name == name }) {
			t.Errorf("the list must have %s, which the program contains", name)
		}
	}
	if len(linked) < 20 {
		t.Errorf("the program must contain the modules of Kubernetes, got %q", linked)
	}
	for _, c := range listed {
		// The standard library has the licence of Go. The module under test is a folder, not a version.
		if c.Name == "std" || c.Version == "(devel)" {
			continue
		}
		if len(c.Evidence.Licenses) == 0 {
			t.Errorf("%s %s: no licence was found", c.Name, c.Version)
		}
		for _, found := range c.Evidence.Licenses {
			if !slices.Contains(permissive, found.License.ID) {
				t.Errorf("%s %s: the licence %q is not one of %q", c.Name, c.Version, found.License.ID, permissive)
			}
		}
	}
}

// listModules returns the modules of a program.
func listModules(t *testing.T, program string) []component {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "cyclonedx-gomod", "bin", "-json", "-licenses", "-version",
		"v0.0.0", program)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the modules: %v", err)
	}
	var list struct{ Components []component }
	if err := json.Unmarshal(output, &list); err != nil {
		t.Fatalf("decoding the list of modules: %v", err)
	}
	return list.Components
}
