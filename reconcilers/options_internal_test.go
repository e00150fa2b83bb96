package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
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

func TestDefaultSettings(t *testing.T) {
	defaults := Options{}.settings()
	if got := defaults.Workers; got != DefaultWorkers {
		t.Errorf("workers by default: got %d", got)
	}
	if d := cmp.Diff(memory.DefaultErrorDelays, defaults.ErrorDelays); d != "" {
		t.Errorf("error delays by default: -want, +got:\n%s", d)
	}
	own := Options{Workers: 1, ErrorDelays: []time.Duration{}}.settings()
	if own.Workers != 1 {
		t.Errorf("one worker: got %d", own.Workers)
	}
	if own.ErrorDelays == nil || len(own.ErrorDelays) > 0 {
		t.Errorf("no delays replace the default, too: got %v", own.ErrorDelays)
	}
}
