package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestHoldingNewObjects shows that a webhook adds the finalizer only where the operator would: in served namespaces,
// and for handlers that need it.
func TestHoldingNewObjects(t *testing.T) {
	deleting := &handlers.Handler{ID: "d", Reason: cause.Delete, Call: succeed}
	failing := &handlers.Handler{ID: "f", Reason: cause.Delete, Call: succeed, Filters: []handlers.Filter{
		func(context.Context, *cause.Cause) (bool, error) { return false, errors.New("broken") },
	}}
	for name, c := range map[string]struct {
		reason    string
		handler   *handlers.Handler
		patterns  []string
		once      bool
		cluster   bool
		namespace string
		held      bool
	}{
		"Everywhere": {"without patterns, new objects of every namespace are held", deleting, nil, false, false, "a",
			true},
		"Named": {"a namespace given by name is served", deleting, []string{"a", "b"}, false, false, "a", true},
		"NotNamed": {"a namespace that is not given is not served", deleting, []string{"b", "c"}, false, false,
			"a", false},
		"Matching": {"a namespace that matches a pattern is served", deleting, []string{"a*"}, false, false, "a1",
			true},
		"NotMatching": {"a namespace that does not match any pattern is not served", deleting, []string{"a*"}, false,
			false, "b", false},
		"WithoutScan": {"with ScanOnce, a namespace that only matches a pattern is not served", deleting,
			[]string{"a*", "b"}, true, false, "a1", false},
		"NamedWithout": {"with ScanOnce, a namespace given by name is served", deleting, []string{"a*", "b"}, true,
			false, "b", true},
		"ClusterScoped": {"a cluster-scoped object is held, whatever the namespaces", deleting, []string{"a"}, false,
			true, "", true},
		"NoNeed": {
			"an object without deletion handlers is not held", counting("c", cause.Create, nil), nil, false, false, "a",
			false,
		},
		"Optional": {"an optional timer does not need the finalizer", optionalTimer(), nil, false, false, "a", false},
		"Daemon": {
			"a daemon needs the finalizer", daemon("d", handlers.BackgroundOptions{}, succeed), nil, false, false, "a",
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := reconcilers.Options{Namespaces: named(c.patterns...), ScanOnce: c.once}
			registered := registrationFor(t, "configmaps", c.handler)
			complete(&o, registered)
			add, err := hold(t, o, registered.Selector, !c.cluster, c.namespace)
			if err != nil || (add != nil) != c.held {
				t.Errorf("held: %v, %v: %s", add != nil, err, c.reason)
			}
		})
	}
	o := reconcilers.Options{}
	registered := registrationFor(t, "configmaps", failing)
	complete(&o, registered)
	if _, err := hold(t, o, registered.Selector, true, "a"); err == nil {
		t.Error("a filter that fails must be an error")
	}
}

func hold(
	t *testing.T, o reconcilers.Options, s discovery.Selector, namespaced bool, namespace string,
) (patching.Transform, error) {
	t.Helper()
	r := discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps",
		Namespaced: namespaced,
	}
	body := map[string]any{"metadata": map[string]any{"name": "x", "namespace": namespace}}
	return o.NewCreations().FinalizerTransform(t.Context(), s, r, namespace, body)
}

// TestNoGate shows that a nil gate is always open.
func TestNoGate(t *testing.T) {
	var g *reconcilers.Gate
	if !g.Open() || !g.Enter() || g.Busy() != 0 {
		t.Error("a nil gate must be open and idle")
	}
	g.Leave()
}
