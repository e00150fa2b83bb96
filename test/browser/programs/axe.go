package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// CacheVariable names the environment variable with the folder to keep downloads in: that of test/controlplane.
const CacheVariable = "KOPF_RUNTIME_CACHE"

// The pinned version of axe-core. To move to another version, change the first constant and take the sum from the
// error.
const (
	AxeVersion = "4.14.1"
	axeSum     = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
	axeFile    = "package/axe.min.js"
)

// Axe returns the script axe-core in the pinned version, from the cache or from npm's configured registry. It prints a
// download to report. The script only runs inside of a browser.
//
// # Errors
//
// npm is missing, or cannot get the package, or the package is not the pinned one.
func Axe(ctx context.Context, report io.Writer) ([]byte, error) {
	root, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	cached := filepath.Join(root, "axe-core", AxeVersion, filepath.Base(axeFile))
	if script, err := os.ReadFile(cached); err == nil && verify(script) == nil {
		return script, nil
	}
	_, _ = fmt.Fprintf(report, "getting axe-core %s by npm into %s (once)\n", AxeVersion, filepath.Dir(cached))
	if err := os.MkdirAll(filepath.Dir(cached), 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache folder of axe-core: %w", err)
	}
	script, err := download(ctx, filepath.Dir(cached))
	if err != nil {
		return nil, fmt.Errorf("getting axe-core %s: %w", AxeVersion, err)
	}
	if err := publish(script, cached); err != nil {
		return nil, fmt.Errorf("putting axe-core into the cache: %w", err)
	}
	return script, nil
}

func cacheRoot() (string, error) {
	if root := os.Getenv(CacheVariable); root != "" {
		return filepath.Abs(root)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w; set %s", err, CacheVariable)
	}
	return filepath.Join(user, "kopf-runtime"), nil
}

// download lets npm pack the package in a folder of its own, so that several processes may do it at once.
func download(ctx context.Context, near string) ([]byte, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, fmt.Errorf("npm is needed (Debian: npm): %w", err)
	}
	dir, err := os.MkdirTemp(near, ".incoming-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command := exec.CommandContext(ctx, "npm", "pack", "--ignore-scripts", "--loglevel=error", "axe-core@"+AxeVersion)
	command.Dir = dir // also so that no project's configuration is read
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	packed, err := os.Open(filepath.Join(dir, "axe-core-"+AxeVersion+".tgz"))
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	return unpack(packed)
}

// unpack takes the one file out of the package that is wanted.
func unpack(packed io.Reader) ([]byte, error) {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("unpacking: there is no %s", axeFile)
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking: %w", err)
		}
		if header.Name != axeFile {
			continue
		}
		script, err := io.ReadAll(files)
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", axeFile, err)
		}
		return script, verify(script)
	}
}

func verify(script []byte) error {
	sum := sha256.Sum256(script)
	if got := hex.EncodeToString(sum[:]); got != axeSum {
		return fmt.Errorf("the SHA-256 of %s is %s, and not %s as pinned", axeFile, got, axeSum)
	}
	return nil
}

// publish makes a file visible by a rename, so that it is there completely or not at all.
func publish(content []byte, path string) error {
	incoming, err := os.CreateTemp(filepath.Dir(path), ".incoming-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(incoming, bytes.NewReader(content))
	if err = errors.Join(err, incoming.Close()); err == nil {
		err = os.Rename(incoming.Name(), path)
	}
	if err != nil {
		_ = os.Remove(incoming.Name())
	}
	return err
}
