package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScopes(t *testing.T) {
	tests := map[string]struct {
		reason     string
		namespaces []string
		namespaced bool
		want       []string
	}{
		"ClusterScoped": {"objects outside of namespaces are watched as a whole", nil, false, []string{""}},
		"ClusterScopedInNamespaces": {
			"even by an operator for some namespaces: they are in none", []string{"a", "b"}, false, []string{""},
		},
		"All": {"one watch for the whole cluster", nil, true, []string{""}},
		"Some": {
			"one watch for each namespace: the rights for more may be missing", []string{"a", "b"}, true,
			[]string{"a", "b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Options{Namespaces: tc.namespaces}.scopes(tc.namespaced)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestErrorDelays(t *testing.T) {
	tests := map[string]struct {
		reason   string
		delays   []time.Duration
		failures int
		want     time.Duration
	}{
		"First":      {"the first failure is most likely a passing one", nil, 0, time.Second},
		"Fibonacci":  {"then the delays grow, as in Kopf", nil, 6, 13 * time.Second},
		"Last":       {"up to ten minutes", nil, 14, 610 * time.Second},
		"Repeating":  {"which repeat", nil, 1000, 610 * time.Second},
		"Own":        {"own delays replace all of them", []time.Duration{time.Minute}, 0, time.Minute},
		"OwnRepeats": {"and repeat as well", []time.Duration{time.Minute, time.Hour}, 7, time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			own := throttle{failures: tc.failures}
			if got, again := own.fail(
				Options{ErrorDelays: tc.delays}.errorDelays(), time.Now(),
			); got != tc.want || !again {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestNoErrorDelays(t *testing.T) {
	var own throttle
	if delay, again := own.fail(
		Options{ErrorDelays: []time.Duration{}}.errorDelays(), time.Now(),
	); again || delay != 0 || own.failures != 0 {
		t.Errorf(
			"with no delays, nothing is tried again by itself, and nothing is kept: got %s, %v, %+v", delay, again, own,
		)
	}
}

func TestWorkers(t *testing.T) {
	if got := (Options{}).workers(); got != DefaultWorkers {
		t.Errorf("by default: got %d", got)
	}
	if got := (Options{Workers: 1}).workers(); got != 1 {
		t.Errorf("one: got %d", got)
	}
}
