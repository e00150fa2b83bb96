package memory

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// Scope is one kind in one namespace, or in all. Versions of a kind are the same objects.
type Scope struct {
	Resource schema.GroupResource
	// Namespace is empty for all.
	Namespace string
}

// String names the scope in messages.
func (s Scope) String() string {
	if s.Namespace == "" {
		return s.Resource.String()
	}
	return s.Resource.String() + " in " + s.Namespace
}

// Scoped is all that outlives the controllers of one scope.
type Scoped struct {
	Objects *Objects
	// Background knows what runs for the objects, and what is done for good.
	Background *background.Supervisor
	// Indexer knows what the objects have in the indices.
	Indexer *indexes.Indexer
	// Unhandled knows since when objects wait for the end of a change.
	Unhandled *Unhandled
}

// Registry has the memory of every scope of one operator.
type Registry struct {
	// Ticks and Daemons bound what runs in the background of all scopes together.
	Ticks, Daemons background.Limit

	mu     sync.Mutex
	scopes map[Scope]Scoped
}

// Of is the memory of a scope; it is made when it is asked for at first.
func (r *Registry) Of(s Scope) Scoped {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.scopes[s]
	if !ok {
		known = Scoped{
			Objects:    NewObjects(),
			Background: &background.Supervisor{Ticks: &r.Ticks, Daemons: &r.Daemons},
			Indexer:    &indexes.Indexer{},
			Unhandled:  &Unhandled{},
		}
		if r.scopes == nil {
			r.scopes = map[Scope]Scoped{}
		}
		r.scopes[s] = known
	}
	return known
}

// Namespaces are those that there is memory of a resource for.
func (r *Registry) Namespaces(of schema.GroupResource) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for scope := range r.scopes {
		if scope.Resource == of {
			names = append(names, scope.Namespace)
		}
	}
	return names
}

// All is the memory of all scopes as it is now.
func (r *Registry) All() map[Scope]Scoped {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.scopes)
}

// Drop forgets a scope of which no controller runs. Whoever has its memory may go on with that.
func (r *Registry) Drop(s Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.scopes, s)
}
