package quickstart_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module = "github.com/kopf-runtime/kopf-runtime"
	// version is that of the working tree in the proxy. It is always the same, so that the build cache applies.
	version = "v0.0.0-20260101000000-000000000000"
)

// serveModules writes a module proxy with the working tree and returns its URL.
func serveModules(t *testing.T, root string, folders ...string) string {
	t.Helper()
	proxy := t.TempDir()
	for _, folder := range folders {
		name := path.Join(module, folder)
		to := filepath.Join(proxy, filepath.FromSlash(name), "@v")
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		definition, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		definition = bytes.ReplaceAll(definition, []byte(module+" v0.0.0\n"), []byte(module+" "+version+"\n"))
		packed, err := pack(filepath.Join(root, folder), name, definition)
		if err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string][]byte{
			"list": nil, "../@latest": versionInfo(),
			version + ".mod": definition, version + ".zip": packed, version + ".info": versionInfo(),
		} {
			if err := os.WriteFile(filepath.Join(to, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return "file://" + filepath.ToSlash(proxy)
}

func versionInfo() []byte {
	return fmt.Appendf(nil, `{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version)
}

// pack returns the zip of a module: its files without those of other modules below it.
func pack(folder, name string, definition []byte) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, missing := os.Stat(filepath.Join(file, "go.mod"))
			isOther := file != folder && (missing == nil || entry.Name() == "bin" || entry.Name() == "node_modules" ||
				strings.HasPrefix(entry.Name(), "."))
			if isOther {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "go.work" ||
			entry.Name() == "go.work.sum" {
			return nil
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if relative == "go.mod" {
			content = definition
		}
		to, err := archive.Create(name + "@" + version + "/" + filepath.ToSlash(relative))
		if err != nil {
			return err
		}
		_, err = to.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = archive.Close()
	return packed.Bytes(), err
}
