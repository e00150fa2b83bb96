package kopf

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// mistakes are what a handler was told of its use of this package: each is worth one line in the log. Nil is for
// functions that are no handlers.
type mistakes struct {
	looked  atomic.Int32 // how many calls were looked at for changes in place
	inPlace atomic.Bool
	delay   atomic.Bool
	sleep   atomic.Bool
	items   atomic.Bool // fields of list items were lost
	erased  atomic.Bool // by an update with the client

	mu   sync.Mutex
	subs map[uintptr]*mistakes // of sub-handlers by their functions, as there may be any number of ids
}

// firstCalls is how many calls of a handler are looked at: a mistake shows early or in a test, and looking takes time.
const firstCalls = 3

// everyCall is true in test binaries. It cannot be known before the flags are there.
var everyCall = sync.OnceValue(func() bool { return flag.Lookup("test.v") != nil })

// looks tells whether a call that begins is to be looked at for changes in place.
func (m *mistakes) looks() bool {
	switch {
	case m == nil || m.inPlace.Load():
		return false
	case m.looked.Load() < firstCalls && m.looked.Add(1) <= firstCalls:
		return true
	default:
		return everyCall()
	}
}

// ofSub are those of a sub-handler.
func (m *mistakes) ofSub(function uintptr) *mistakes {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sub := m.subs[function]
	if sub == nil {
		sub = &mistakes{}
		if m.subs == nil {
			m.subs = map[uintptr]*mistakes{}
		}
		m.subs[function] = sub
	}
	return sub
}

// noteDelay tells that the delay of an error cannot be meant, if it is so.
func (m *mistakes) noteDelay(log logr.Logger, err error) {
	if m == nil || err == nil || m.delay.Load() {
		return
	}
	var temporary *temporaryError
	if errors.As(err, &temporary) && temporary.unitless() && m.delay.CompareAndSwap(false, true) {
		logging.Warn(log, "Waiting a second after a temporary error: its delay is too short to be meant; logged once "+
			"for the handler", "delay", defaults.TooShort(temporary.delay).Error())
	}
}

// noteSleep logs that the duration of a sleep cannot be meant.
func (m *mistakes) noteSleep(log logr.Logger, err error) {
	if m != nil && m.sleep.CompareAndSwap(false, true) {
		logging.Warn(log, "Sleeping for a second: the duration is too short to be meant; logged once for the handler",
			"duration", err.Error())
	}
}

// noteLost tells of changes in place that are lost now that the handler has succeeded.
func (c *Change[T]) noteLost() {
	fields := c.original.Lost(c.call.Working)
	if len(fields) > 0 && c.mistakes.inPlace.CompareAndSwap(false, true) {
		logging.Warn(c.log,
			"Handler changed its copy of the object, which is written nowhere; logged once for the handler",
			"fields", fields, "instead", fmt.Sprintf("Patch(func(object %T) { ... })", c.Object))
	}
}

const (
	// schemaTimeout limits the request of a schema: a handler is waiting, perhaps one of admission.
	schemaTimeout = 3 * time.Second
	// schemaLife is how long a schema is taken for the present one, schemaPause the time between failed requests.
	schemaLife, schemaPause = 10 * time.Minute, time.Minute
)

// listKeys reads the keys of lists from the schemas of kinds, when they are first needed. Nil does not know any.
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

func (c *Change[T]) lists() codec.Lists {
	return c.cluster.keys.lists(c.call.Resource, c.mistakes, c.log)
}
