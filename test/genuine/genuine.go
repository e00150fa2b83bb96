package genuine

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	requirements := requirements + strings.Join(more, "\n")
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for the Python environment: %w", err)
	}
	sum := sha256.Sum256([]byte(requirements))
	folder := filepath.Join(cache, "kopf-runtime", "interop-"+hex.EncodeToString(sum[:6]))
	ready := filepath.Join(folder, "ready")
	if _, err := os.Stat(ready); err == nil {
		return folder, nil
	}
	fmt.Fprintln(
		os.Stderr, "installing Kopf of test/genuine/requirements.txt into", folder, "(this takes about a minute, once)",
	)
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("clearing the Python environment: %w", err)
	}
	if err := command("python3", "-m", "venv", folder); err != nil {
		return "", fmt.Errorf(
			"making a Python environment: Python 3.10 or later with its venv module is needed (Debian: "+
				"python3-venv): %w",
			err,
		)
	}
	wanted := filepath.Join(folder, "requirements.txt")
	if err := os.WriteFile(wanted, []byte(requirements), 0o600); err != nil {
		return "", fmt.Errorf("writing down what is to be installed: %w", err)
	}
	pip := filepath.Join(folder, "bin", "pip")
	if err := command(pip, "install", "--quiet", "--disable-pip-version-check", "-r", wanted); err != nil {
		return "", fmt.Errorf("installing Kopf: the Python package index is needed: %w", err)
	}
	return folder, os.WriteFile(ready, nil, 0o600)
}

func command(name string, args ...string) error {
	run := exec.Command(name, args...)
	run.Stdout, run.Stderr = os.Stderr, os.Stderr
	return run.Run()
}
