package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var errSource = errors.New("no access")

// writing returns a source that writes some programs, and then fails if an error is given.
func writing(t *testing.T, failure error, names ...string) source {
	return func(_ context.Context, want []string, folder string) error {
		for _, name := range names {
			if !slices.Contains(want, name) {
				t.Errorf("%s is fetched again", name)
			}
			writeProgram(t, folder, name, 0o755)
		}
		return failure
	}
}

func writeProgram(t *testing.T, folder, name string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), mode); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	cases := map[string]struct {
		reason  string
		given   []string
		cached  []string
		sources []source
		wantErr string
	}{
		"given folder incomplete": {
			reason: "a folder that lacks a program is the user's mistake, and no reason to look elsewhere",
			given:  []string{"etcd"}, cached: []string{"etcd", "kubectl"}, wantErr: "no executable kubectl",
		},
		"given folder": {reason: "the user's folder comes before everything", given: []string{"etcd", "kubectl"}},
		"all sources fail": {
			reason:  "the error has that of each source, and a solution",
			sources: []source{writing(t, errSource), writing(t, errSource, "etcd")}, wantErr: "kubectl: no access",
		},
		"second source": {
			reason:  "a source makes what the one before it could not",
			sources: []source{writing(t, errSource, "etcd"), writing(t, nil, "kubectl")},
		},
		"grown": {
			reason: "programs in the cache are not fetched again",
			cached: []string{"etcd"}, sources: []source{writing(t, nil, "kubectl")},
		},
		"cached": {reason: "a complete cache needs no source", cached: []string{"etcd", "kubectl"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			given := ""
			if tc.given != nil {
				given = t.TempDir()
				for _, name := range tc.given {
					writeProgram(t, given, name, 0o755)
				}
			}
			t.Chdir("../../..")
			t.Setenv("KUBEBUILDER_ASSETS", given)
			t.Setenv("KOPF_RUNTIME_CACHE", t.TempDir())
			folder, err := cacheFolder()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // a folder of the test
				t.Fatal(err)
			}
			for _, name := range tc.cached {
				writeProgram(t, folder, name, 0o755)
			}
			got, err := resolve(t.Context(), []string{"etcd", "kubectl"}, tc.sources...)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) ||
					!strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			if want := map[bool]string{true: given, false: folder}[given != ""]; err != nil || got != want {
				t.Errorf("%s: want %s, got %s, %v", tc.reason, want, got, err)
			}
			if left, _ := filepath.Glob(filepath.Join(folder, ".incoming-*")); len(left) > 0 {
				t.Errorf("%s: left %v", tc.reason, left)
			}
		})
	}
}

// TestMissing has a file that cannot be executed, as after a lost mode.
func TestMissing(t *testing.T) {
	folder := t.TempDir()
	writeProgram(t, folder, "etcd", 0o644)
	if got := missing(folder, []string{"etcd"}); len(got) != 1 {
		t.Errorf("a file without an executable mode is accepted")
	}
}

// TestBuildsArePinned shows that the sums of the builds cover the programs themselves.
func TestBuildsArePinned(t *testing.T) {
	t.Chdir("../../..")
	for module, file := range pins {
		version, err := pinnedVersion(module)
		if err != nil {
			t.Fatal(err)
		}
		sums, err := os.ReadFile(strings.TrimSuffix(file, "mod") + "sum")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(sums), module+" v"+version+" h1:") {
			t.Errorf("the sums of %s do not have %s", module, version)
		}
	}
}
