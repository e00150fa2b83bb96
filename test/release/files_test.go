package release_test

import (
	"os"
	"path/filepath"
	"testing"
)

const module = "github.com/kopf-runtime/kopf-runtime"

// readFile returns the text of a file.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeFile writes a file, and the folders above it.
func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file, and keeps its mode.
func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	writeFile(t, to, readFile(t, from))
	if err := os.Chmod(to, mode); err != nil {
		t.Fatal(err)
	}
}
