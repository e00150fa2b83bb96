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
	named := func(name, prefix string, m manager.Manager) *claim {
		if c := known[name]; c != nil && m == here {
			return c
		}
		c, err := newClaim(m, Options{Name: name, Prefix: prefix})
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
	others := widgets
	others.Plural = "others"
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
			"the versions of a kind are the same objects", named("one", "p", here), v2,
			"it handles the same objects as example.org/v1, Kind=Widget",
		},
		"BothOther": {
			"whoever handles them", named("two", "p", here), v2, `operator "one" of this process does already`,
		},
		"OtherPrefix":  {"each has its own memory", named("three", "q", here), widgets, ""},
		"OtherPlural":  {"other objects", named("two", "p", here), others, ""},
		"OtherManager": {"maybe another cluster", named("one", "p", there), widgets, ""},
	}
	release, err := named("one", "p", here).acquire(widgets)
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
}

// An operator that is over leaves nothing.
func TestClaimsEndWithTheirOperators(t *testing.T) {
	m := candidate{channel: make(chan struct{})}
	first, err := newClaim(m, Options{Name: "one", Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := newClaim(m, Options{Name: "two", Prefix: "q"})
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
		if err := SetupWithManager(m, Options{Name: "one", Prefix: "p", Registrations: []Registration{
			{Selector: discovery.OfKind(kind), Handler: &handlers.Handler{ID: "h"}},
		}}); err != nil {
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
