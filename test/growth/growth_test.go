package growth_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

const workloadVariable = "GROWTH_OF"

// works contains the shapes of growth that the measurement must distinguish.
var works = map[string]func(size int) func(){
	"linear": func(size int) func() {
		return func() {
			found := map[int]bool{}
			for i := range size {
				found[i] = true
			}
		}
	},
	"searching": func(size int) func() {
		return func() {
			found := make([]int, 0, size)
			for i := range size {
				if !slices.Contains(found, i) {
					found = append(found, i)
				}
			}
		}
	},
	"copying": func(size int) func() {
		return func() {
			var found []int
			for i := range size {
				found = append(slices.Clone(found), i)
			}
		}
	},
}

func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	growth.Linear(t, 20_000, works["linear"])
}

func TestNotLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	if name := os.Getenv(workloadVariable); name != "" {
		growth.Linear(t, 2_400, works[name])
		return
	}
	for _, name := range []string{"searching", "copying"} {
		command := exec.Command(os.Args[0], "-test.run=^TestNotLinear$")
		command.Env = append(os.Environ(), workloadVariable+"="+name)
		if out, err := command.CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "32 times the size of 300") {
			t.Errorf("%s grows with the square, and passes: %v, %s", name, err, out)
		}
	}
}
