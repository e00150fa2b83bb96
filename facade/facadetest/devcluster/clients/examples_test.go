package clients_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// examplesTimeout is the timeout for Kopf's tests of its examples, which sleep for minutes.
const examplesTimeout = 30 * time.Minute

// TestExamplesOfKopf runs Kopf's own tests of its examples. They cover 17 examples; the last example, 12-embedded, has
// a main function instead.
func TestExamplesOfKopf(t *testing.T) {
	sources := os.Getenv("KOPF_SOURCES")
	if sources == "" {
		t.Skip("skipped, KOPF_SOURCES is not set: see the documentation of this package")
	}
	c := startDevelopment(t, devcluster.Options{PretendReady: true})
	python := filepath.Join(sources, ".venv", "bin")
	path := filepath.Dir(assetsKubectl(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	for name, tc := range map[string]struct {
		program string
		want    []string
	}{
		"Tests": {"pytest tests/e2e examples --only-e2e --no-cov --timeout 300", []string{"17 passed"}},
		"Embedded": {
			"python -u examples/12-embedded/example.py",
			[]string{"Hello, kopf-example-2!", "Good bye, kopf-example-2!"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, assetsKubectl(t), c, "", "apply", "-f", filepath.Join(sources, "examples", "crd.yaml"))
			if err != nil {
				t.Fatalf("applying the definition of the examples: %v\n%s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), examplesTimeout)
			defer cancel()
			words := strings.Fields(tc.program)
			cmd := exec.CommandContext(ctx, filepath.Join(python, words[0]), words[1:]...)
			cmd.Dir, cmd.Env = sources, environment(t, c, "PATH="+path)
			var printed bytes.Buffer
			cmd.Stdout, cmd.Stderr = &printed, &printed
			err = cmd.Run()
			for _, want := range tc.want {
				if err != nil || !strings.Contains(printed.String(), want) {
					t.Fatalf("got the error %v, want %q in:\n%s", err, want, printed.String())
				}
			}
		})
	}
}
