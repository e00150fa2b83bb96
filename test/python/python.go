// Package python installs Python programs of pinned versions into environments in the user's cache.
//
// It stands apart because a suite and a target of the Makefile need different programs. It installs nothing for the
// whole machine.
//
// Neighbours: test/genuine installs the genuine Kopf, test/documents/site the generator of the site.
package python

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Install returns the folder of a Python environment with the modules of a requirements.txt. The programs are in its
// folder bin. The environment is made on the first use. Name begins the name of the folder, and what describes the
// modules for messages.
//
// # Errors
//
// Python with its module venv is missing or too old, or the package index cannot be reached.
func Install(name, what, requirements string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for the Python environment: %w", err)
	}
	sum := sha256.Sum256([]byte(requirements))
	folder := filepath.Join(cache, "kopf-runtime", name+"-"+hex.EncodeToString(sum[:6]))
	ready := filepath.Join(folder, "ready")
	if _, err := os.Stat(ready); err == nil {
		return folder, nil
	}
	fmt.Fprintln(os.Stderr, "installing", what, "into", folder, "(this takes about a minute, once)")
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("clearing the Python environment: %w", err)
	}
	if err := run("python3", "-m", "venv", folder); err != nil {
		return "", fmt.Errorf(
			"making a Python environment: Python 3.11 or later with its module venv is needed (Debian: "+
				"python3-venv): %w",
			err,
		)
	}
	wanted := filepath.Join(folder, "requirements.txt")
	if err := os.WriteFile(wanted, []byte(requirements), 0o600); err != nil {
		return "", fmt.Errorf("writing the requirements of the Python environment: %w", err)
	}
	pip := filepath.Join(folder, "bin", "pip")
	if err := run(pip, "install", "--quiet", "--disable-pip-version-check", "-r", wanted); err != nil {
		return "", fmt.Errorf("installing %s: the Python package index is needed: %w", what, err)
	}
	return folder, os.WriteFile(ready, nil, 0o600)
}

func run(name string, args ...string) error {
	command := exec.Command(name, args...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Run()
}
