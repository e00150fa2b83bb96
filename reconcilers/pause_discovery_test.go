package reconcilers_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// inquiries counts the requests for documents of discovery.
type inquiries struct {
	http.RoundTripper

	count atomic.Int64
}

func (i *inquiries) RoundTrip(r *http.Request) (*http.Response, error) {
	if parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); len(parts) <= 3 && parts[len(parts)-1] != "comets" {
		i.count.Add(1)
	}
	return i.RoundTripper.RoundTrip(r)
}

// cometClient installs and removes the kind of comets, and creates comets.
type cometClient struct{ directClient }

func (c cometClient) install() {
	c.t.Helper()
	if err := c.Create(c.t.Context(), definition()); err != nil {
		c.t.Fatal(err)
	}
}

func (c cometClient) uninstall() {
	c.t.Helper()
	if err := c.Delete(c.t.Context(), definition()); err != nil {
		c.t.Fatal(err)
	}
}

func (c cometClient) createComet(version, name string) {
	c.t.Helper()
	if err := c.Create(c.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sky.example.org/" + version, "kind": "Comet",
		"metadata": map[string]any{"name": name, "namespace": "default"},
	}}); err != nil {
		c.t.Fatal(err)
	}
}

// replaceVersion replaces the served version of the kind.
func (c cometClient) replaceVersion() {
	c.t.Helper()
	crd := definition()
	if err := c.Get(c.t.Context(), types.NamespacedName{Name: crd.GetName()}, crd); err != nil {
		c.t.Fatal(err)
	}
	crd.Object["spec"].(map[string]any)["versions"] = []any{map[string]any{
		"name": "v2", "served": true, "storage": true,
	}}
	if err := c.Update(c.t.Context(), crd); err != nil {
		c.t.Fatal(err)
	}
}

// TestKindsThatComeAndGoInAPause shows that kinds installed and removed in a pause are known when the pause ends.
func TestKindsThatComeAndGoInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		sky := cometClient{newDirectClient(t, server)}
		watches := &watchCounter{RoundTripper: server, plural: "comets"}
		asked, gate := &inquiries{RoundTripper: watches}, &reconcilers.Gate{}
		gate.Set(true)
		var calls, forgotten atomic.Int64
		index, filling := byName()
		m := newCheckedManager(t, asked)
		stop := operateIn(t, m, reconcilers.Options{Gate: gate, OnGone: func(types.UID) { forgotten.Add(1) }},
			registrationFor(t, "category=sky", filling),
			registrationFor(t, "category=sky", &handlers.Handler{ID: "e", Family: handlers.Watching,
				Call: func(context.Context, *handlers.Invocation) error {
					calls.Add(1)
					return nil
				}})) // it writes nothing, because clients would read documents of discovery, too
		defer stop()
		want := func(when string, handled, indexed, open int64) {
			t.Helper()
			synctest.Wait()
			m.requireFailingChecks(when, m.ready)
			if calls.Load() != handled || int64(index.Len()) != indexed || watches.open.Load() != open {
				t.Errorf("%s: %d calls, %d in the index, %d watches; want %d, %d, %d", when, calls.Load(), index.Len(),
					watches.open.Load(), handled, indexed, open)
			}
		}
		sky.install()
		sky.createComet("v1", "halley")
		time.Sleep(time.Minute)
		want("paused from the start", 0, 0, 0)
		before := asked.count.Load()
		gate.Set(false)
		time.Sleep(time.Second)
		want("after the pause, with the kind found during it", 1, 1, 1)
		if n := asked.count.Load() - before; n != 0 {
			t.Errorf("%d documents of discovery were read at the end of the pause, want 0", n)
		}
		gate.Set(true)
		time.Sleep(time.Minute)
		want("in the second pause", 1, 1, 0)
		sky.uninstall()
		time.Sleep(time.Minute)
		want("after the kind was removed in the pause", 1, 0, 0)
		if forgotten.Load() != 1 {
			t.Errorf("%d objects were forgotten, want 1", forgotten.Load())
		}
		gate.Set(false)
		time.Sleep(time.Minute)
		want("after the pause, without the kind", 1, 0, 0)
		sky.install()
		sky.createComet("v1", "halley")
		time.Sleep(time.Minute)
		want("after the kind was installed again", 2, 1, 1)
	})
}

// TestIndicesOfKindsThatComeInAPause shows that handlers wait for the indices of kinds and versions that were installed
// in a pause.
func TestIndicesOfKindsThatComeInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		sky := cometClient{newDirectClient(t, server)}
		gate := &reconcilers.Gate{}
		gate.Set(true)
		index, filling := byName()
		var mu sync.Mutex
		var noted []string
		found := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(noted) }
		stop := operateAll(t, delayLists(server, "comets", steady(10*time.Second)), reconcilers.Options{Gate: gate},
			registrationFor(t, "category=sky", filling),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create,
				Call: func(context.Context, *handlers.Invocation) error {
					mu.Lock()
					defer mu.Unlock()
					noted = append(noted, keysOf(index))
					return nil
				}}))
		defer stop()
		time.Sleep(time.Minute)
		sky.install()
		sky.createComet("v1", "halley")
		sky.create("ConfigMap", "c")
		time.Sleep(time.Minute)
		gate.Set(false)
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		sky.replaceVersion()
		time.Sleep(time.Minute)
		if got := found(); len(got) != 0 {
			t.Errorf("no handler must be called before the indexed kind is listed: %q", got)
		}
		gate.Set(false)
		time.Sleep(time.Minute)
		if got := found(); !slices.Equal(got, []string{"halley"}) {
			t.Errorf("found %q, want halley", got)
		}
	})
}
