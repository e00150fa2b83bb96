package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// A webhook may add the finalizer already, but only where the operator would: in the namespaces that it serves, for
// handlers that need it.
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
		"Everywhere":    {"without patterns, all is served", deleting, nil, false, false, "a", true},
		"Named":         {"it is named", deleting, []string{"a", "b"}, false, false, "a", true},
		"NotNamed":      {"others are", deleting, []string{"b", "c"}, false, false, "a", false},
		"Matching":      {"it will be served when it is seen", deleting, []string{"a*"}, false, false, "a1", true},
		"NotMatching":   {"no pattern does", deleting, []string{"a*"}, false, false, "b", false},
		"WithoutScan":   {"patterns mean nothing then", deleting, []string{"a*", "b"}, true, false, "a1", false},
		"NamedWithout":  {"names do", deleting, []string{"a*", "b"}, true, false, "b", true},
		"ClusterScoped": {"it is in no namespace", deleting, []string{"a"}, false, true, "", true},
		"NoNeed": {
			"nothing is to be done at its end", counting("c", cause.Create, nil), nil, false, false, "a", false,
		},
		"Optional": {"it ends without a finalizer", optionalTimer(), nil, false, false, "a", false},
		"Daemon": {
			"it is to be stopped first", daemon("d", handlers.Background{}, succeed), nil, false, false, "a", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := reconcilers.Options{Namespaces: named(c.patterns...), ScanOnce: c.once}
			registered := to(t, "configmaps", c.handler)
			complete(&o, registered)
			add, err := hold(t, o, registered.Selector, !c.cluster, c.namespace)
			if err != nil || (add != nil) != c.held {
				t.Errorf("held: %v, %v: %s", add != nil, err, c.reason)
			}
		})
	}
	o := reconcilers.Options{}
	registered := to(t, "configmaps", failing)
	complete(&o, registered)
	if _, err := hold(t, o, registered.Selector, true, "a"); err == nil {
		t.Error("a filter that fails is told of")
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
	return o.Creations().Hold(t.Context(), s, r, namespace, body)
}

// Who needs no gate has none.
func TestNoGate(t *testing.T) {
	var g *reconcilers.Gate
	if !g.Open() || !g.Enter() || g.Busy() != 0 {
		t.Error("no gate is a closed one")
	}
	g.Leave()
}
