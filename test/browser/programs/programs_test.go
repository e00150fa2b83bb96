package programs_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/browser/programs"
)

// script puts a program into a folder.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// setEmptyPath makes an empty folder all that is in PATH.
func setEmptyPath(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: programs are found elsewhere, too")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv(programs.ChromiumVariable, "")
	t.Setenv(programs.CacheVariable, t.TempDir())
	return dir
}

func TestChromium(t *testing.T) {
	dir := setEmptyPath(t)
	if path, err := programs.Chromium(); !errors.Is(err, programs.ErrNoChromium) {
		t.Errorf("nothing is in PATH, but there is %q, %v", path, err)
	}
	chrome := script(t, dir, "google-chrome", "echo Google Chrome 1")
	if path, err := programs.Chromium(); path != chrome || err != nil {
		t.Errorf("any of the names does: got %q, %v", path, err)
	}
	chromium := script(t, dir, "chromium", "echo Chromium 1")
	if path, err := programs.Chromium(); path != chromium || err != nil {
		t.Errorf("pictures are of Chromium, so it comes first: got %q, %v", path, err)
	}
	if version, err := programs.Version(t.Context(), chromium); version != "Chromium 1" || err != nil {
		t.Errorf("the version is returned unchanged: got %q, %v", version, err)
	}
	t.Setenv(programs.ChromiumVariable, chrome)
	if path, err := programs.Chromium(); path != chrome || err != nil {
		t.Errorf("what the user names is taken: got %q, %v", path, err)
	}
	t.Setenv(programs.ChromiumVariable, filepath.Join(dir, "missing"))
	if path, err := programs.Chromium(); err == nil || errors.Is(err, programs.ErrNoChromium) {
		t.Errorf("a wrong path is a mistake, and no reason to skip: got %q, %v", path, err)
	}
}

func TestInstallChromium(t *testing.T) {
	dir := setEmptyPath(t)
	var told bytes.Buffer
	if _, err := programs.InstallChromium(t.Context(), &told); !errors.Is(err, programs.ErrNoChromium) {
		t.Errorf("without apt-get nothing can be done: got %v", err)
	}
	script(t, dir, "apt-get", `echo no such package; exit 1`)
	_, err := programs.InstallChromium(t.Context(), &told)
	if os.Geteuid() != 0 {
		if !errors.Is(err, programs.ErrNoChromium) {
			t.Errorf("only root installs packages: got %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "no such package") {
		t.Errorf("what apt-get says is in the error: got %v", err)
	}
	made := filepath.Join(dir, "chromium")
	script(t, dir, "apt-get", `case "$*" in *install*) echo '#!/bin/sh' >`+made+`; /bin/chmod +x `+made+`;; esac`)
	path, err := programs.InstallChromium(t.Context(), &told)
	if path != made || err != nil {
		t.Errorf("got %q, %v, want the installed program, %q", path, err, made)
	}
	if !strings.Contains(told.String(), "installing") {
		t.Errorf("the installation is reported; the report is %q", told.String())
	}
}

func TestAxe(t *testing.T) {
	dir := setEmptyPath(t)
	_, err := programs.Axe(t.Context(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "npm is needed") {
		t.Errorf("without npm the error must name npm: got %v", err)
	}
	packed := filepath.Join(t.TempDir(), "packed")
	if err := os.WriteFile(packed, archive(t, "package/axe.min.js", "alert(1)"), 0o600); err != nil {
		t.Fatal(err)
	}
	script(t, dir, "npm", `/bin/cp `+packed+` axe-core-`+programs.AxeVersion+`.tgz`)
	_, err = programs.Axe(t.Context(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "as pinned") {
		t.Errorf("another script than the pinned one is never used: got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv(programs.CacheVariable), "*", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("nothing of it may stay in the cache: %q, %v", left, err)
	}
}

// archive is a package of one file, as npm packs it.
func archive(t *testing.T, name, content string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = files.Write([]byte(content))
	}
	if err := errors.Join(err, files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
