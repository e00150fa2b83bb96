package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
	"github.com/kopf-runtime/kopf-runtime/test/genuine"
)

// python returns the folder of a Python environment with Kopf and the packages of a file in testdata. It skips the test
// if Python cannot create environments, as "make test-envtest" does with the other tests of Kopf.
func python(t *testing.T, requirements string) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import ensurepip, venv").Run(); err != nil {
		t.Skipf("skipped, python3 with venv is missing (Debian: python3-venv): %v", err)
	}
	more, err := os.ReadFile(filepath.Join("testdata", requirements))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := genuine.Folder(string(more))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestPythonClient(t *testing.T) {
	program := filepath.Join(python(t, "client.txt"), "bin", "python")
	onBoth(t, devcluster.Options{}, func(t *testing.T, c cluster) {
		out, err := run(t, program, c, "", filepath.Join("testdata", "client.py"))
		if err != nil || !strings.HasSuffix(out, "all calls are answered\n") {
			t.Errorf("the Python client must get all answers: %v\n%s", err, out)
		}
	})
}
