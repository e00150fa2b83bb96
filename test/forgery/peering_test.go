package forgery_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var tenantPeerings = memapi.Resource{
	Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true,
}

// tenancy is an operator of two namespaces, one of which belongs to a hostile tenant: "mine".
type tenancy struct {
	*harness

	op     *kopf.Operator
	index  *kopf.Index[string, string]
	runner *facadetest.Runner
}

func newTenancy(t *testing.T, rules bool) *tenancy {
	w := &tenancy{harness: newHarness(t, true)}
	w.server.Install(tenantPeerings)
	peers := kopf.PeeringSettings{Name: "shared", Identity: "me", KopfRules: rules}
	w.op = kopf.New(operatorName, kopf.Settings{Namespaces: []string{"mine", "others"}, Peering: peers})
	targets := kopf.ForResource(w.op, gvk.GroupVersion().String(), "targets")
	targets.OnCreate("c", w.handle)
	targets.OnUpdate("u", w.handle)
	w.index = kopf.NewIndex(targets, "names", func(
		_ context.Context, object *unstructured.Unstructured,
	) (map[string]string, error) {
		return map[string]string{object.GetNamespace() + "/" + object.GetName(): "here"}, nil
	})
	return w
}

// start runs the operator until it is stopped.
func (w *tenancy) start() (stop func()) {
	w.runner = facadetest.Start(w.t, w.op, facadetest.Against(memapi.Config(w.server)))
	w.runners = append(w.runners, w.runner)
	return func() {
		if err := w.runner.Stop(); err != nil {
			w.t.Errorf("the operator ended: %v", err)
		}
	}
}

// attack writes a record into the tenant's peering object, and makes it if need be.
func (w *tenancy) attack(record map[string]any) {
	w.server.Put(tenantPeerings, map[string]any{
		"metadata": map[string]any{"namespace": "mine", "name": "shared"}, "status": map[string]any{"evil": record},
	})
}

func (w *tenancy) create(namespace, name string) {
	w.t.Helper()
	object := newTarget(name)
	object.SetNamespace(namespace)
	if err := w.client.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// want says which objects were handled.
func (w *tenancy) want(when string, names ...string) {
	w.t.Helper()
	var got []string
	for _, r := range w.runners {
		for _, c := range r.Calls() {
			if c.Handler == "c" || c.Handler == "u" {
				got = append(got, c.Name)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		w.t.Errorf("%s: handlers are called for %q, want %q", when, got, names)
	}
}

// events are the reasons of those on the tenant's peering object.
func (w *tenancy) events() (reasons []string) {
	w.t.Helper()
	events := &unstructured.UnstructuredList{}
	events.SetAPIVersion("v1")
	events.SetKind("EventList")
	if err := w.client.List(w.t.Context(), events, client.InNamespace("mine")); err != nil {
		w.t.Fatal(err)
	}
	for _, event := range events.Items {
		about, _, _ := unstructured.NestedString(event.Object, "involvedObject", "kind")
		reason, _, _ := unstructured.NestedString(event.Object, "reason")
		if about == "KopfPeering" {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// hostileRecords are records that never end, or as good as never.
var hostileRecords = map[string]map[string]any{
	"century":  {"priority": int64(math.MaxInt32), "lifetime": int64(1 << 40), "lastseen": "2000-01-01T00:00:00Z"},
	"timeless": {"priority": int64(math.MaxInt32), "lifetime": int64(600)},
	"future":   {"priority": int64(math.MaxInt32), "lifetime": int64(600), "lastseen": "2000-01-01T00:10:00Z"},
	"ours": {"priority": int64(math.MaxInt32), "lifetime": int64(600), "lastseen": "2000-01-01T00:00:00Z",
		"runtime": "kopf-runtime", "busy": int64(1)},
}

// A tenant who can write the peering object of one namespace pauses the operator there, and nowhere else:
// D-peering-namespace.
func TestTenantPausesOneNamespace(t *testing.T) {
	for name, record := range hostileRecords {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTenancy(t, false)
				w.attack(record)
				w.create("mine", "m1")
				w.create("others", "o1")
				stop := w.start()
				defer stop()
				time.Sleep(time.Minute)
				w.want("the other namespace is served", "o1")
				w.create("mine", "m2")
				w.create("others", "o2")
				time.Sleep(time.Minute)
				w.want("it is served on", "o1", "o2")
				keys := slices.Sorted(w.index.Keys())
				if !slices.Equal(keys, []string{"mine/m1", "mine/m2", "others/o1", "others/o2"}) {
					t.Errorf("indices are filled in a pause, too: %q", keys)
				}
				if got := w.events(); !slices.Equal(got, []string{"Paused"}) {
					t.Errorf("events on the peering object: %q", got)
				}
				if n := strings.Count(w.runner.Output(), "Pausing operations"); n != 1 {
					t.Errorf("%d lines say that it pauses", n)
				}
			})
		})
	}
}

// A record that the tenant does not renew ends, whether its object is still there or not; and so does one without a
// time: D-peering-absent, D-peering-lastseen.
func TestTenantStopsPausing(t *testing.T) {
	for name, record := range hostileRecords {
		if name == "century" {
			continue // a century is not over
		}
		for _, deleted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTenancy(t, false)
					w.attack(record)
					w.create("mine", "m1")
					stop := w.start()
					defer stop()
					time.Sleep(time.Minute)
					w.want("the record is valid")
					if deleted {
						w.server.Discard(tenantPeerings, "mine", "shared")
					}
					time.Sleep(30 * time.Minute)
					w.want("the record has ended", "m1")
					if got := w.events(); !deleted && !slices.Equal(got, []string{"Paused", "Resumed"}) {
						t.Errorf("events on the peering object: %q", got)
					}
				})
			})
		}
	}
}

// By Kopf's rules, one namespace pauses the operator everywhere, and the end of the object changes nothing.
func TestTenantUnderKopfRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTenancy(t, true)
		w.attack(hostileRecords["timeless"])
		w.create("others", "o1")
		stop := w.start()
		defer stop()
		time.Sleep(time.Minute)
		w.want("all namespaces are paused")
		w.server.Discard(tenantPeerings, "mine", "shared")
		time.Sleep(time.Hour)
		w.want("the record never ends")
		if got := w.events(); len(got) > 0 {
			t.Errorf("Kopf posts no events: %q", got)
		}
	})
}

// A tenant who pauses and resumes the operator again and again gets each object handled once, and one event a minute.
func TestTenantFlickers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTenancy(t, false)
		w.attack(map[string]any{"priority": int64(-1)})
		w.create("mine", "m1")
		w.create("others", "o1")
		stop := w.start()
		defer stop()
		for n := range 60 {
			priority := int64(math.MaxInt32)
			if n%2 == 0 {
				priority = -1
			}
			w.attack(map[string]any{"priority": priority, "lifetime": int64(60 + n)})
			time.Sleep(10 * time.Second)
		}
		w.server.Discard(tenantPeerings, "mine", "shared")
		time.Sleep(10 * time.Minute)
		w.want("each object is handled once", "m1", "o1")
		if n := len(w.events()); n > 12 {
			t.Errorf("%d events in ten minutes", n)
		}
	})
}
