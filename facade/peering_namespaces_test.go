package kopf_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var namespacePeerings = memapi.Resource{
	Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true,
}

// namespaceCluster is a cluster with several namespaces. Some of them have a peering, which answers late.
type namespaceCluster struct {
	t      *testing.T
	server *memapi.Server

	mu      sync.Mutex
	handled []string // namespaces, in order
}

// addPeeredNamespace creates a namespace with one object, and with a peering that has these records.
func (e *namespaceCluster) addPeeredNamespace(name string, records map[string]any) {
	e.server.Put(namespacePeerings, map[string]any{
		"metadata": map[string]any{"namespace": name, "name": "shared"}, "status": records,
	})
	e.addNamespace(name)
}

// addNamespace creates a namespace with one object and without a peering.
func (e *namespaceCluster) addNamespace(name string) {
	object := body(map[string]any{"size": int64(1)})
	object["metadata"] = map[string]any{"namespace": name, "name": "w1"}
	e.server.Put(widgetResource, object)
	e.server.Put(memapi.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"}, map[string]any{
		"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": "Active"},
	})
}

// run runs an operator for all namespaces that match a pattern. Requests for peerings take some time.
func (e *namespaceCluster) run(lag time.Duration) (stop func()) {
	connection := e.server.Connect()
	connection.Before = func(ctx context.Context, r memapi.Request) error {
		if r.Resource.Plural == namespacePeerings.Plural {
			select {
			case <-ctx.Done():
			case <-time.After(lag):
			}
		}
		return nil
	}
	op := kopf.New("test.example.org", kopf.Settings{
		Namespaces: []string{"team-*"}, Peering: kopf.PeeringSettings{Name: "shared", Identity: "me"},
	})
	kopf.For(op, &Widget{}).OnCreate("create", func(_ context.Context, c *Change) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.handled = append(e.handled, c.Object.Namespace)
		return nil
	})
	end := startInManager(e.t, connection, op)
	return func() {
		if err := end(); err != nil {
			e.t.Error(err)
		}
	}
}

func (e *namespaceCluster) want(when string, handled ...string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.handled)
	if !slices.Equal(e.handled, handled) {
		e.t.Errorf("%s: handled in %q, want %q", when, e.handled, handled)
	}
}

// TestNamespacesThatComeWaitForTheirPeering shows that a namespace that appears while the operator runs is served as
// soon as its peering has answered, unless a peer has a higher priority. The other namespaces are served meanwhile.
func TestNamespacesThatComeWaitForTheirPeering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &namespaceCluster{t: t, server: memapi.New()}
		e.server.Install(widgetResource)
		e.server.Install(namespacePeerings)
		e.addPeeredNamespace("team-a", nil)
		e.addNamespace("team-b")
		stop := e.run(5 * time.Second)
		defer stop()
		time.Sleep(time.Minute)
		e.want("existing namespaces are served", "team-a", "team-b")
		e.addPeeredNamespace("team-c", nil)
		e.addNamespace("team-d")
		time.Sleep(4 * time.Second)
		e.want("new namespaces are not served before their peerings have answered", "team-a", "team-b")
		time.Sleep(time.Minute)
		e.want("new namespaces are served when their peerings have answered", "team-a", "team-b", "team-c", "team-d")
		e.addPeeredNamespace("team-e", map[string]any{"him": map[string]any{
			"priority": int64(9), "lifetime": int64(120), "lastseen": time.Now().UTC().Format(time.RFC3339),
		}})
		time.Sleep(100 * time.Second)
		e.want("a namespace with a peer of higher priority is not served", "team-a", "team-b", "team-c", "team-d")
		time.Sleep(time.Minute)
		e.want("a namespace is served after its peer has expired", "team-a", "team-b", "team-c", "team-d", "team-e")
	})
}
