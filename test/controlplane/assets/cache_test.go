package assets_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

func TestCacheHeals(t *testing.T) {
	cases := map[string]struct {
		reason      string
		damage      func(t *testing.T, dir string)
		wantFetches int32
	}{
		"half-built": {
			reason:      "a program that is missing is made again",
			damage:      func(t *testing.T, dir string) { remove(t, dir, "kube-apiserver") },
			wantFetches: 1,
		},
		"truncated": {
			reason: "a program that lost its end is made again",
			damage: func(t *testing.T, dir string) {
				if err := os.Truncate(filepath.Join(dir, "etcd"), 5); err != nil {
					t.Fatal(err)
				}
			},
			wantFetches: 1,
		},
		"wrong version": {
			reason:      "a replaced program is built again, even if the length is the same",
			damage:      func(t *testing.T, dir string) { script(t, dir, "kubectl", answer("kubectl", "1.35.3")) },
			wantFetches: 1,
		},
		"manifest of another version": {
			reason: "a manifest of another version invalidates the cache",
			damage: func(t *testing.T, dir string) {
				edit(t, filepath.Join(dir, "manifest.json"), `"version": "`+assets.EtcdVersion, `"version": "3.5.0`)
			},
			wantFetches: 1,
		},
		"manifest lost": {
			reason:      "programs without a manifest can be incomplete and are built again",
			damage:      func(t *testing.T, dir string) { remove(t, dir, "manifest.json") },
			wantFetches: 1,
		},
		"manifest broken": {
			reason:      "a manifest that cannot be read vouches for nothing",
			damage:      func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "manifest.json"), "{", "") },
			wantFetches: 1,
		},
		"not executable": {
			reason: "a program that lost its mode is made again",
			damage: func(t *testing.T, dir string) {
				if err := os.Chmod(filepath.Join(dir, "etcd"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			wantFetches: 1,
		},
		"restored": {
			reason: "a cache that went through an archive has other times and the same content",
			damage: func(t *testing.T, dir string) {
				if err := os.Chtimes(filepath.Join(dir, "etcd"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
					t.Fatal(err)
				}
			},
		},
		"untouched": {
			reason: "a good cache is used as it is",
			damage: func(*testing.T, string) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := isolate(t)
			tc.damage(t, dir)
			source := &factory{t: t}
			got, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{source}})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if got.Dir != dir {
				t.Errorf("%s: want %s, got %s", tc.reason, dir, got.Dir)
			}
			if n := source.fetches.Load(); n != tc.wantFetches {
				t.Errorf("%s: the source was asked %d times, want %d", tc.reason, n, tc.wantFetches)
			}
			again := &factory{t: t}
			if _, err := assets.Resolve(
				t.Context(), assets.Options{Sources: []assets.Source{again}},
			); err != nil || again.fetches.Load() > 0 {
				t.Errorf("%s: the healed cache is not complete (error %v)", tc.reason, err)
			}
		})
	}
}

func TestCacheGrows(t *testing.T) {
	dir := isolate(t)
	before := stat(t, dir, "etcd")
	o := assets.Options{Extra: []string{assets.ControllerManager}, Sources: []assets.Source{&factory{t: t}}}
	got, err := assets.Resolve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(got.Path(assets.ControllerManager)); err != nil {
		t.Errorf("an extra program joins the others: %v", err)
	}
	if !os.SameFile(before, stat(t, dir, "etcd")) {
		t.Error("an existing program must not be built again")
	}
	if left := litter(t, dir, assets.ControllerManager); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCacheReadOnly(t *testing.T) {
	dir := isolate(t)
	remove(t, filepath.Dir(dir), ".lock")
	if _, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), ".lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a complete cache may be read-only, so nothing is written into it; the lock: %v", err)
	}
}

func TestCacheKeepsWhatWasFinished(t *testing.T) {
	t.Setenv(assets.CacheVariable, t.TempDir())
	t.Setenv(assets.AssetsVariable, "")
	failing := &factory{t: t, missingProgram: "kubectl"}
	if _, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{failing}}); err == nil {
		t.Fatal("got no error, want one about kubectl")
	}
	second := &factory{t: t, missingProgram: "etcd"} // so that asking for it again would fail
	if _, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{second}}); err != nil {
		t.Errorf("the second attempt only builds missing programs: %v", err)
	}
}

func TestCacheSweepsWhatWasKilled(t *testing.T) {
	dir := isolate(t)
	killed := filepath.Join(dir, ".incoming-123")
	if err := os.Mkdir(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	script(t, killed, "etcd", "half a program")
	remove(t, dir, "etcd")
	if _, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{&factory{t: t}}}); err != nil {
		t.Fatal(err)
	}
	if left := litter(t, dir); len(left) > 0 {
		t.Errorf("the files of a killed build are removed: %v", left)
	}
}

func TestCacheCancelled(t *testing.T) {
	t.Setenv(assets.CacheVariable, t.TempDir())
	t.Setenv(assets.AssetsVariable, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	first := &factory{t: t, missingProgram: "etcd", onFetch: func() { cancel(given) }}
	second := &factory{t: t}
	_, err := assets.Resolve(ctx, assets.Options{Sources: []assets.Source{first, second}})
	if !errors.Is(err, given) || second.fetches.Load() > 0 {
		t.Errorf(
			"a cancelled search ends with its cause and asks no other source: got %v after %d more", err,
			second.fetches.Load(),
		)
	}
}

func TestCacheFilledOnce(t *testing.T) {
	t.Setenv(assets.CacheVariable, t.TempDir())
	t.Setenv(assets.AssetsVariable, "")
	waiting := make(chan struct{})
	out := &signalWriter{trigger: "waiting for another process", triggered: waiting}
	source := &factory{t: t, onFetch: func() { <-waiting }} // until the other one has said that it waits
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := assets.Resolve(
				t.Context(), assets.Options{Progress: out, Sources: []assets.Source{source}},
			); err != nil {
				t.Errorf("resolving at the same time: %v", err)
			}
		})
	}
	group.Wait()
	if n := source.fetches.Load(); n != 1 {
		t.Errorf("callers at the same time fill once: the source was asked %d times", n)
	}
}

func TestLockCancelled(t *testing.T) {
	t.Setenv(assets.CacheVariable, t.TempDir())
	t.Setenv(assets.AssetsVariable, "")
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := &factory{t: t, onFetch: func() { close(entered); <-leave }}
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{slow}}); err != nil {
			t.Error(err)
		}
	})
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := assets.Resolve(
		ctx, assets.Options{Sources: []assets.Source{slow}},
	); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits for another process can give up: got %v", err)
	}
	close(leave)
	group.Wait()
}

// signalWriter closes a channel when a sign has been written.
type signalWriter struct {
	mu        sync.Mutex
	text      bytes.Buffer
	trigger   string
	triggered chan struct{}
	once      sync.Once
}

func (w *signalWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if strings.Contains(w.text.String(), w.trigger) {
		w.once.Do(func() { close(w.triggered) })
	}
	return len(p), nil
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, path, old, replacement string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func stat(t *testing.T, dir, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return info
}
