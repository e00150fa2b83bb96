package logkeys_test

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/logkeys"
)

// failureRecorder keeps what a test would fail for.
type failureRecorder struct {
	testing.TB
	failures []any
	cleanups []func()
}

func (f *failureRecorder) Helper() {}

func (f *failureRecorder) Cleanup(end func()) { f.cleanups = append(f.cleanups, end) }

func (f *failureRecorder) Errorf(_ string, args ...any) { f.failures = append(f.failures, args...) }

func TestUnique(t *testing.T) {
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger)
		want   []any
	}{
		"Line": {"both are in the line",
			func(l logr.Logger) { l.Info("m", "a", 1, "a", 2) }, []any{"m: a"}},
		"Logger": {"one is the logger's",
			func(l logr.Logger) { l.WithValues("a", 1).Info("m", "a", 2) }, []any{"m: a"}},
		"Loggers": {"both are",
			func(l logr.Logger) { l.WithValues("a", 1).WithValues("a", 2).Info("m") }, []any{"m: a"}},
		"Error": {"each error has its key",
			func(l logr.Logger) { l.Error(errors.New("b"), "m", "error", 1) }, []any{"m: error"}},
		"Debug": {"a debug line is checked too",
			func(l logr.Logger) { l.V(4).Info("m", "a", 1, "a", 2) }, []any{"m: a"}},
		"Siblings": {"neither has both",
			func(l logr.Logger) { _, _ = l.WithValues("a", 1), l.WithValues("a", 2); l.Info("m") }, nil},
		"Values": {"a value may equal a key",
			func(l logr.Logger) { l.WithName("a").Info("m", "a", "b", "b", "a") }, nil},
	}
	for name, tc := range cases {
		for which, log := range map[string]logr.Logger{
			"nobody": logr.Discard(), "somebody": funcr.New(func(string, string) {}, funcr.Options{}),
		} {
			t.Run(name+" to "+which, func(t *testing.T) {
				f := &failureRecorder{TB: t}
				tc.log(logkeys.Unique(f, log))
				for _, end := range f.cleanups {
					end()
				}
				if d := cmp.Diff(tc.want, f.failures); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		}
	}
}
