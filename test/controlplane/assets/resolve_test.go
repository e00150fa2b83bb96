package assets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

func TestResolveGivenFolder(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(dir string)
		extra   []string
		wantErr []string
	}{
		"missing": {
			reason:  "a folder that lacks a program is the user's mistake, and no reason to look elsewhere in silence",
			prepare: func(dir string) { _ = os.Remove(filepath.Join(dir, "kubectl")) },
			wantErr: []string{"KUBEBUILDER_ASSETS", "kubectl", "unset"},
		},
		"not executable": {
			reason:  "a file without an executable mode is not accepted",
			prepare: func(dir string) { _ = os.Chmod(filepath.Join(dir, "etcd"), 0o644) },
			wantErr: []string{"no executable etcd"},
		},
		"extra missing": {
			reason:  "a missing extra program is an error",
			prepare: func(string) {},
			extra:   []string{assets.ControllerManager},
			wantErr: []string{assets.ControllerManager},
		},
		"complete": {
			reason:  "the user's folder comes before everything, whatever versions it holds",
			prepare: func(dir string) { script(t, dir, "etcd", "etcd Version: 3.4.0") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			dir := t.TempDir()
			programs(t, dir)
			tc.prepare(dir)
			t.Setenv(assets.AssetsVariable, dir)
			source := &factory{t: t}
			got, err := assets.Resolve(t.Context(), assets.Options{Extra: tc.extra, Sources: []assets.Source{source}})
			if n := source.fetches.Load(); n > 0 {
				t.Errorf("%s: sources were asked %d times", tc.reason, n)
			}
			if tc.wantErr != nil {
				wantError(t, tc.reason, err, tc.wantErr)
				return
			}
			if want := (assets.Assets{Dir: dir, IsUserProvided: true}); err != nil || got != want {
				t.Errorf("%s: want %v, got %v, %v", tc.reason, want, got, err)
			}
		})
	}
}

func TestResolveUnknownExtra(t *testing.T) {
	_, err := assets.Resolve(t.Context(), assets.Options{Extra: []string{"kube-proxy"}})
	wantError(t,
		"an unknown extra program is an error that names it", err, []string{"kube-proxy", assets.ControllerManager})
}

func TestResolveCacheUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		env    map[string]string
	}{
		"no home": {
			reason: "a user without a home has no cache folder",
			env: map[string]string{
				assets.CacheVariable: "", "HOME": "", "XDG_CACHE_HOME": "", "LocalAppData": "", "home": "",
			},
		},
		"not a folder": {
			reason: "a folder cannot be made below a file",
			env:    map[string]string{assets.CacheVariable: file},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(assets.AssetsVariable, "")
			for key, value := range tc.env {
				t.Setenv(key, value)
			}
			_, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{&factory{t: t}}})
			wantError(
				t, tc.reason+", and the error says what to do", err,
				[]string{assets.CacheVariable, assets.AssetsVariable},
			)
		})
	}
}

func TestResolveSourceOrder(t *testing.T) {
	cases := map[string]struct {
		reason     string
		first      *factory
		wantSecond int32
		wantErr    []string
		second     *factory
	}{
		"both fail": {
			reason:     "the error contains the error of each source and a solution",
			first:      &factory{missingProgram: "etcd"},
			second:     &factory{missingProgram: "kubectl"},
			wantSecond: 1,
			wantErr:    []string{"no recipe for etcd", "no recipe for kubectl", assets.AssetsVariable},
		},
		"both wrong": {
			reason:     "a program of another minor version is refused",
			first:      &factory{versionOutputs: map[string]string{"kubectl": answer("kubectl", "1.2.3")}},
			second:     &factory{versionOutputs: map[string]string{"kubectl": "no idea"}},
			wantSecond: 1,
			wantErr:    []string{"is version 1.2.3, wanted " + assets.KubernetesVersion, "no version in the answer"},
		},
		"first fails": {
			reason:     "the next source makes what the first could not",
			first:      &factory{missingProgram: "kube-apiserver"},
			wantSecond: 1,
		},
		"first suffices": {
			reason: "a slower source is not asked without need",
			first:  &factory{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(assets.CacheVariable, t.TempDir())
			t.Setenv(assets.AssetsVariable, "")
			first, second := tc.first, tc.second
			if second == nil {
				second = &factory{}
			}
			first.t, second.t = t, t
			got, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{first, second}})
			if n := second.fetches.Load(); n != tc.wantSecond {
				t.Errorf("%s: the second source was asked %d times, want %d", tc.reason, n, tc.wantSecond)
			}
			if tc.wantErr != nil {
				wantError(t, tc.reason, err, tc.wantErr)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if left := litter(t, got.Dir); len(left) > 0 {
				t.Errorf("%s: left behind: %v", tc.reason, left)
			}
		})
	}
}

func wantError(t *testing.T, reason string, err error, parts []string) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: got no error", reason)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error lacks %q: %v", reason, part, err)
		}
	}
}
