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
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// loggedMistakes holds the mistakes of one handler in its use of this package that are already logged. Each is logged
// once, not for each call. Nil is for functions that are not handlers, such as filters.
type loggedMistakes struct {
	checkedCalls   atomic.Int32 // number of calls that were checked for changes in place
	inPlaceChange  atomic.Bool  // the copy of the object was changed without Patch
	shortDelay     atomic.Bool  // a delay of a temporary error was too short
	shortSleep     atomic.Bool  // a duration of Sleep was too short
	lostItemFields atomic.Bool  // fields of list items were lost
	erasedFields   atomic.Bool  // an update with the client erased fields

	mu          sync.Mutex
	subHandlers map[uintptr]*loggedMistakes // of sub-handlers, by code pointer: there can be any number of ids
}

// maxCheckedCalls is the number of calls of a handler that are checked for changes in place. The check encodes the
// object several times, and a mistake usually shows in the first calls or in a test.
const maxCheckedCalls = 3

// checksEveryCall reports whether to check every call: in test binaries. It is evaluated late, because package testing
// registers its flags after the initialization of packages.
var checksEveryCall = sync.OnceValue(func() bool { return flag.Lookup("test.v") != nil })

// shouldCheckCall reports whether to check the call that begins for changes in place.
func (m *loggedMistakes) shouldCheckCall() bool {
	switch {
	case m == nil || m.inPlaceChange.Load():
		return false
	case m.checkedCalls.Load() < maxCheckedCalls && m.checkedCalls.Add(1) <= maxCheckedCalls:
		return true
	default:
		return checksEveryCall()
	}
}

// forSubHandler returns the mistakes of a sub-handler.
func (m *loggedMistakes) forSubHandler(function uintptr) *loggedMistakes {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sub := m.subHandlers[function]
	if sub == nil {
		sub = &loggedMistakes{}
		if m.subHandlers == nil {
			m.subHandlers = map[uintptr]*loggedMistakes{}
		}
		m.subHandlers[function] = sub
	}
	return sub
}

// noteDelay logs a temporary error whose delay is too short, most likely a number without a unit.
func (m *loggedMistakes) noteDelay(log logr.Logger, err error) {
	if m == nil || err == nil || m.shortDelay.Load() {
		return
	}
	var temporary *temporaryError
	if errors.As(err, &temporary) && temporary.lacksUnit() && m.shortDelay.CompareAndSwap(false, true) {
		logging.Warn(log, "Waiting a second after a temporary error: its delay is too short to be meant; logged once "+
			"for the handler", "delay", defaults.CheckMinimumDuration(temporary.delay).Error())
	}
}

// noteSleep logs a sleep whose duration is too short, most likely a number without a unit.
func (m *loggedMistakes) noteSleep(log logr.Logger, err error) {
	if m != nil && m.shortSleep.CompareAndSwap(false, true) {
		logging.Warn(log, "Sleeping for a second: the duration is too short to be meant; logged once for the handler",
			"duration", err.Error())
	}
}

const (
	// schemaTimeout limits the request for a schema, because a handler waits for it: in admission, a client does, too.
	schemaTimeout = 3 * time.Second
	// schemaLifetime is the time until a schema is read again. schemaRetryDelay is the time between failed requests.
	schemaLifetime, schemaRetryDelay = 10 * time.Minute, time.Minute
)

// listKeys reads the keys of lists from the schemas of kinds, when they are first needed. Nil provides no keys.
type listKeys struct {
	server discovery.Getter
	kinds  sync.Map // *keysOfKind by schema.GroupVersionKind
}

// keysOfKind holds the keys of the lists of one kind.
type keysOfKind struct {
	mu        sync.Mutex
	keys      func(list []string) []string // nil until the schema is read
	expiresAt time.Time                    // when to read the schema again
}

// newListKeys returns list keys that are read from the API server of the manager.
func newListKeys(m ctrl.Manager) (*listKeys, error) {
	server, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client for schemas: %w", err)
	}
	api := discovery.API{Client: server.RESTClient()}
	return &listKeys{server: discovery.TimeoutGetter{Getter: api, Timeout: schemaTimeout}}, nil
}

// keysOfList returns the keys of one list; nil if it does not have keys, or if the schema cannot be read. Without keys,
// list items are matched by common fields.
func (l *listKeys) keysOfList(kind schema.GroupVersionKind, list diff.Path, log logr.Logger) []string {
	known, _ := l.kinds.LoadOrStore(kind, &keysOfKind{})
	found, _ := known.(*keysOfKind)
	// One request at a time for each kind: other handlers wait for its result.
	found.mu.Lock()
	defer found.mu.Unlock()
	if time.Now().After(found.expiresAt) {
		keys, err := discovery.ListKeysOf(context.Background(), l.server, kind)
		// Keep former keys, if any: they are more likely right than none.
		if err != nil {
			found.expiresAt = time.Now().Add(schemaRetryDelay)
			log.V(1).Info("Cannot read the schema of the kind; recognising list items by their common fields",
				"error", err.Error())
		} else {
			found.keys, found.expiresAt = keys, time.Now().Add(schemaLifetime)
		}
	}
	if found.keys == nil {
		return nil
	}
	return found.keys(list)
}

// listRules returns the rules by which a changed list is merged into the raw object. Fields of list items that T does
// not have can only be kept if the items are recognized.
func (l *listKeys) listRules(kind *discovery.Resource, said *loggedMistakes, log logr.Logger) (lists codec.Lists) {
	if l != nil && kind != nil {
		lists.Keys = func(list diff.Path) []string { return l.keysOfList(kind.GroupVersionKind, list, log) }
	}
	if said != nil {
		lists.OnLost = func(fields []string) {
			if said.lostItemFields.CompareAndSwap(false, true) {
				logging.Warn(log, "Changed list items lost fields that the Go type does not have, as nothing "+
					"identifies the items; logged once for the handler", "fields", fields,
					"remedy", "give the items a unique name, or the list x-kubernetes-list-map-keys in the schema")
			}
		}
	}
	return lists
}
