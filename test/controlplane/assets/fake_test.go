package assets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// script writes an executable that prints the line.
func script(t *testing.T, dir, name, line string) {
	t.Helper()
	shell(t, dir, name, "echo '"+line+"'")
}

// shell writes an executable. A fork of another goroutine must not inherit the open file, because the kernel does not
// run a file that is open for writing.
func shell(t *testing.T, dir, name, code string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+code+"\n"), 0o755); err != nil {
		t.Error(err)
	}
}

// answer is what a program of that version says.
func answer(name, version string) string {
	return map[string]string{
		"etcd":                   "etcd Version: " + version,
		"kube-apiserver":         "Kubernetes v" + version,
		"kubectl":                "Client Version: v" + version,
		assets.ControllerManager: "Kubernetes v" + version,
	}[name]
}

// programs writes a complete set of fake programs.
func programs(t *testing.T, dir string) {
	t.Helper()
	script(t, dir, "etcd", answer("etcd", assets.EtcdVersion))
	script(t, dir, "kube-apiserver", answer("kube-apiserver", assets.KubernetesVersion))
	script(t, dir, "kubectl", answer("kubectl", assets.KubernetesVersion))
}

// factory is a Source of fake programs.
type factory struct {
	t              *testing.T
	fetches        atomic.Int32      // how often it was asked
	versionOutputs map[string]string // what a program says, where it differs
	missingProgram string            // a program that it cannot make
	onFetch        func()            // called when it begins
}

func (f *factory) Fetch(_ context.Context, want []assets.Binary, dir string, _ *progress.Reporter) error {
	f.fetches.Add(1)
	if f.onFetch != nil {
		f.onFetch()
	}
	for _, b := range want {
		if b.Name == f.missingProgram {
			return errors.New("no recipe for " + b.Name)
		}
		says, ok := f.versionOutputs[b.Name]
		if !ok {
			says = answer(b.Name, b.Version)
		}
		script(f.t, dir, b.Name, says)
	}
	return nil
}

// isolate gives the test a cache of its own and returns the folder of the current versions in it.
func isolate(t *testing.T) (dir string) {
	t.Helper()
	root := t.TempDir()
	t.Setenv(assets.CacheVariable, root)
	t.Setenv(assets.AssetsVariable, "")
	found, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{&factory{t: t}}})
	if err != nil {
		t.Fatalf("preparing a cache: %v", err)
	}
	return found.Dir
}

// litter lists unexpected files in the folder: those other than the programs, the manifest and extra.
func litter(t *testing.T, dir string, extra ...string) []string {
	t.Helper()
	known := map[string]bool{"etcd": true, "kube-apiserver": true, "kubectl": true, "manifest.json": true}
	for _, name := range extra {
		known[name] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		if !known[e.Name()] {
			left = append(left, fmt.Sprint(e))
		}
	}
	return left
}
