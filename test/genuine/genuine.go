package genuine

import (
	_ "embed"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/python"
)

//go:embed requirements.txt
var requirements string

// Folder returns the folder of a Python environment with Kopf, in which bin/kopf is the command. More requirements may
// follow, as lines of a requirements.txt. The environment is made on the first use, and kept in the user's cache.
//
// # Errors
//
// There is no Python with venv, or no package index.
func Folder(more ...string) (string, error) {
	return python.Install("interop", "Kopf of test/genuine/requirements.txt", requirements+strings.Join(more, "\n"))
}
