package kopf

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

const (
	// schemaTimeout limits the request of a schema: a handler is waiting, perhaps one of admission.
	schemaTimeout = 3 * time.Second
	// schemaLife is how long a schema is taken for the present one, schemaPause the time between failed requests.
	schemaLife, schemaPause = 10 * time.Minute, time.Minute
)

// listKeys reads the keys of lists from the schemas of kinds, when they are first needed. Nil has none.
type listKeys struct {
	server discovery.Getter
	kinds  sync.Map // *keysOfKind by their names
}

// keysOfKind are those of one kind.
type keysOfKind struct {
	mu    sync.Mutex
	keys  func(list []string) []string // nil before the schema was read
	until time.Time                    // when the schema is read again
}

// newListKeys reads from the API server of the manager.
func newListKeys(m ctrl.Manager) (*listKeys, error) {
	server, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client for schemas: %w", err)
	}
	api := discovery.API{Client: server.RESTClient()}
	return &listKeys{server: discovery.Limited{Getter: api, Timeout: schemaTimeout}}, nil
}

// of gives the keys of one list; nil if it does not have any, or if the schema cannot be read.
func (l *listKeys) of(kind schema.GroupVersionKind, list diff.Path, log logr.Logger) []string {
	known, _ := l.kinds.LoadOrStore(kind, &keysOfKind{})
	found, _ := known.(*keysOfKind)
	found.mu.Lock()
	defer found.mu.Unlock()
	if time.Now().After(found.until) {
		keys, err := discovery.ListKeysOf(context.Background(), l.server, kind)
		if err != nil {
			found.until = time.Now().Add(schemaPause)
			log.V(1).Info("Cannot read the schema of the kind; recognising list items by their common fields",
				"error", err.Error())
		} else {
			found.keys, found.until = keys, time.Now().Add(schemaLife)
		}
	}
	if found.keys == nil {
		return nil
	}
	return found.keys(list)
}

// lists are how the items of lists are recognised when the object is changed: nothing else keeps fields with them that
// T does not have.
func (l *listKeys) lists(kind *discovery.Resource, said *mistakes, log logr.Logger) (lists codec.Lists) {
	if l != nil && kind != nil {
		lists.Keys = func(list diff.Path) []string { return l.of(kind.GroupVersionKind, list, log) }
	}
	if said != nil {
		lists.Lost = func(fields []string) {
			if said.items.CompareAndSwap(false, true) {
				logging.Warn(log, "Changed list items lost fields that the Go type does not have, as nothing "+
					"identifies the items; logged once for the handler", "fields", fields,
					"remedy", "give the items a unique name, or the list x-kubernetes-list-map-keys in the schema")
			}
		}
	}
	return lists
}

func (c *Change[T]) lists() codec.Lists { return c.keys.lists(c.call.Resource, c.mistakes, c.log) }
