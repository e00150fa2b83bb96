package memory

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

// KindScope is one kind in one namespace, or in all, and one range of its objects, or all of them. It does not have a
// version: all versions of a kind show the same objects.
type KindScope struct {
	Resource schema.GroupResource
	// Namespace is empty for all namespaces.
	Namespace string
	// Range is one part of the objects; the zero value has all of them.
	Range sharding.Range
}

// String returns the name of the scope for messages.
func (s KindScope) String() string {
	name := s.Resource.String()
	if s.Namespace != "" {
		name += " in " + s.Namespace
	}
	if !s.Range.IsWhole() {
		name += " range " + s.Range.String()
	}
	return name
}

// ScopeMemory is the state of one scope that outlives its controllers.
type ScopeMemory struct {
	Objects *Objects
	// Background has the running background handlers of the objects, and those that have ended permanently.
	Background *background.Supervisor
	// Indexer has the values of the objects in the indices.
	Indexer *indexes.Indexer
	// Unhandled has the times since when objects wait for the end of a change.
	Unhandled *Unhandled
}

// Registry has the memory of every scope of one operator. The zero value is empty and ready to use.
type Registry struct {
	// Ticks and Daemons limit the background handlers of all scopes together.
	Ticks, Daemons background.Limit

	mu     sync.Mutex
	scopes map[KindScope]ScopeMemory
}

// MemoryOf returns the memory of a scope, and creates it with the first call.
func (r *Registry) MemoryOf(s KindScope) ScopeMemory {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.scopes[s]
	if !ok {
		known = ScopeMemory{
			Objects:    NewObjects(),
			Background: &background.Supervisor{Ticks: &r.Ticks, Daemons: &r.Daemons},
			Indexer:    &indexes.Indexer{},
			Unhandled:  &Unhandled{},
		}
		if r.scopes == nil {
			r.scopes = map[KindScope]ScopeMemory{}
		}
		r.scopes[s] = known
	}
	return known
}

// ScopesOf returns the scopes of the resource that have memory, in no order.
func (r *Registry) ScopesOf(of schema.GroupResource) (scopes []KindScope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for scope := range r.scopes {
		if scope.Resource == of {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// AllScopes returns a snapshot of all scopes. The memory itself is shared, not copied.
func (r *Registry) AllScopes() map[KindScope]ScopeMemory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.scopes)
}

// DropScope removes a scope that does not have a running controller. Callers that already hold its memory can continue
// to use it, but a later [Registry.MemoryOf] returns a new one.
func (r *Registry) DropScope(s KindScope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.scopes, s)
}
