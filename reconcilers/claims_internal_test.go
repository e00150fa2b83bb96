package reconcilers

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// candidate implements the part of a manager that claims use.
type candidate struct {
	manager.Manager
	channel chan struct{}
}

func (c candidate) Elected() <-chan struct{} { return c.channel }

func TestAcquire(t *testing.T) {
	here, there := candidate{channel: make(chan struct{})}, candidate{channel: make(chan struct{})}
	known := map[string]*claim{}
	named := func(name, prefix string, m manager.Manager, in ...string) *claim {
		if c := known[name]; c != nil && m == here {
			return c
		}
		o := Options{Settings: Settings{Name: name, Prefix: prefix}}
		for _, text := range in {
			o.Namespaces = append(o.Namespaces, namespaces.ParsePattern(text))
		}
		c, err := newClaim(m, o)
		if err != nil {
			t.Fatal(err)
		}
		if m == here {
			known[name] = c
		}
		return c
	}
	widgets := discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"},
		Plural:           "widgets", Namespaced: true,
	}
	v2 := widgets
	v2.GroupVersionKind = schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Widget"}
	others, spread := widgets, widgets
	others.Plural = "others"
	spread.Namespaced = false
	one := named("one", "p", here, "a", "b")
	tests := map[string]struct {
		reason string
		by     *claim
		of     discovery.Resource
		want   string
	}{
		"Taken": {
			"operators with the same prefix would overwrite each other's records", named("two", "p", here), widgets,
			`operator "one" of this process does already`,
		},
		"OtherVersion": {
			"another version of a handled kind is an error of the operator itself", one, v2,
			"it handles the same objects as example.org/v1, Kind=Widget",
		},
		"BothOther": {
			"another version of a kind that another operator handles is an error", named("two", "p", here), v2,
			`operator "one" of this process does already`,
		},
		"OtherPrefix": {"operators with different prefixes can handle the same kind", named("three", "q", here),
			widgets, ""},
		"OtherPlural": {"operators can handle different kinds", named("two", "p", here), others, ""},
		"OtherNamespaces": {"operators can handle the same kind in different namespaces",
			named("four", "p", here, "c", "d"), widgets, ""},
		"CommonNamespace": {
			"a common namespace is an error", named("five", "p", here, "c", "b"), widgets,
			`operator "one" of this process does already`,
		},
		"MaybeCommonNamespace": {
			"a pattern may match any namespace, so it is an error", named("six", "p", here, "c", "d*"), widgets,
			`operator "one" of this process does already`,
		},
		"OtherManager": {"operators of different managers can handle the same kind", named("one", "p", there), widgets,
			""},
	}
	release, err := one.acquireResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			release, err := tc.by.acquireResource(tc.of)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			case err == nil:
				release()
			}
		})
	}
	release()
	if release, err = named("two", "p", here).acquireResource(widgets); err != nil {
		t.Fatalf("a released resource must be free: %v", err)
	}
	release()
	if release, err = one.acquireResource(spread); err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err = named("four", "p", here).acquireResource(spread); err == nil {
		t.Error("a cluster-scoped kind is served by all operators, so it must be an error")
	}
}

// TestReleaseBesideOthers shows that an operator releases its own claim, and no other one.
func TestReleaseBesideOthers(t *testing.T) {
	m, widgets := candidate{channel: make(chan struct{})}, discovery.Resource{Plural: "widgets", Namespaced: true}
	own := func(name string) *claim {
		c, err := newClaim(
			m,
			Options{
				Settings:   Settings{Name: name, Prefix: "p"},
				Namespaces: namespaces.Patterns{namespaces.ParsePattern(name)},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := own("a"), own("b")
	releaseA, errA := a.acquireResource(widgets)
	releaseB, errB := b.acquireResource(widgets)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	releaseA()
	if _, err := b.acquireResource(widgets); err == nil {
		t.Error("the claim of the other operator must remain")
	}
	if releaseA, errA = a.acquireResource(widgets); errA != nil {
		t.Errorf("a released claim must be free: %v", errA)
	}
	releaseA()
	if releaseB(); len(a.registry.claimants) != 0 {
		t.Errorf("after both releases, no claim must be left: %v", a.registry.claimants)
	}
}

// TestClaimsEndWithTheirOperators shows that the claims of a manager are removed with its last operator.
func TestClaimsEndWithTheirOperators(t *testing.T) {
	m := candidate{channel: make(chan struct{})}
	first, err := newClaim(m, Options{Settings: Settings{Name: "one", Prefix: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := newClaim(m, Options{Settings: Settings{Name: "two", Prefix: "q"}})
	if err != nil {
		t.Fatal(err)
	}
	if first.dropClaim(); !claimed(m.channel) {
		t.Error("the claims must remain while the second operator exists")
	}
	if second.dropClaim(); claimed(m.channel) {
		t.Error("the claims must be removed with the last operator")
	}
}

// TestClaimsEndWithoutAStart shows that the claims of a manager that was never started are removed when the manager is
// garbage-collected.
func TestClaimsEndWithoutAStart(t *testing.T) {
	setUp := func() elected {
		m, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
			Metrics: metricsserver.Options{BindAddress: "0"},
		})
		if err != nil {
			t.Fatal(err)
		}
		kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
		if err := SetupWithManager(m, Options{
			Settings: Settings{Name: "one", Prefix: "p"},
			Registrations: []Registration{
				{Selector: discovery.OfKind(kind), Handler: &handlers.Handler{ID: "h"}},
			},
		}); err != nil {
			t.Fatal(err)
		}
		return m.Elected()
	}
	m := setUp()
	for deadline := time.Now().Add(10 * time.Second); claimed(m); runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("claims remain ten seconds after the last reference to the manager")
		}
	}
}
