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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// candidate is all that is asked of a manager here.
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
			o.Namespaces = append(o.Namespaces, namespaces.Parse(text))
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
			"they would take each other's memory for their own", named("two", "p", here), widgets,
			`operator "one" of this process does already`,
		},
		"OtherVersion": {
			"the versions of a kind are the same objects", one, v2,
			"it handles the same objects as example.org/v1, Kind=Widget",
		},
		"BothOther": {
			"whoever handles them", named("two", "p", here), v2, `operator "one" of this process does already`,
		},
		"OtherPrefix":     {"each has its own memory", named("three", "q", here), widgets, ""},
		"OtherPlural":     {"other objects", named("two", "p", here), others, ""},
		"OtherNamespaces": {"other objects", named("four", "p", here, "c", "d"), widgets, ""},
		"CommonNamespace": {
			"some of the objects are the same", named("five", "p", here, "c", "b"), widgets,
			`operator "one" of this process does already`,
		},
		"MaybeCommonNamespace": {
			"a pattern may match anything", named("six", "p", here, "c", "d*"), widgets,
			`operator "one" of this process does already`,
		},
		"OtherManager": {"maybe another cluster", named("one", "p", there), widgets, ""},
	}
	release, err := one.acquire(widgets)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			release, err := tc.by.acquire(tc.of)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			case err == nil:
				release()
			}
		})
	}
	release()
	if release, err = named("two", "p", here).acquire(widgets); err != nil {
		t.Fatalf("a resource that was released is free: %v", err)
	}
	release()
	if release, err = one.acquire(spread); err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err = named("four", "p", here).acquire(spread); err == nil {
		t.Error("what is outside of namespaces is served by all operators")
	}
}

// Each operator gives back what is its own.
func TestReleaseBesideOthers(t *testing.T) {
	m, widgets := candidate{channel: make(chan struct{})}, discovery.Resource{Plural: "widgets", Namespaced: true}
	own := func(name string) *claim {
		c, err := newClaim(
			m,
			Options{
				Settings:   Settings{Name: name, Prefix: "p"},
				Namespaces: namespaces.Patterns{namespaces.Parse(name)},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := own("a"), own("b")
	releaseA, errA := a.acquire(widgets)
	releaseB, errB := b.acquire(widgets)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	releaseA()
	if _, err := b.acquire(widgets); err == nil {
		t.Error("the other one has it still")
	}
	if releaseA, errA = a.acquire(widgets); errA != nil {
		t.Errorf("it was given back: %v", errA)
	}
	releaseA()
	if releaseB(); len(a.of.acquired) != 0 {
		t.Errorf("nobody has anything: %v", a.of.acquired)
	}
}

// An operator that is over leaves nothing.
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
	if first.end(); !claimed(m.channel) {
		t.Error("the second operator is there")
	}
	if second.end(); claimed(m.channel) {
		t.Error("both operators are over, and the manager is known still")
	}
}

// A manager that is dropped before it was started is known no more when it is collected.
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
			t.Fatal("the manager is known ten seconds after nobody holds it any more")
		}
	}
}
