package reconcilers

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// registered knows which prefix remembers which kind, by manager. Two operators that share both would take each other's
// memory for their own, and only the process as a whole can see it. A manager is known by its channel: it is its own,
// and holds nothing alive.
var registered = struct {
	sync.Mutex
	by map[<-chan struct{}][]registrant
}{by: map[<-chan struct{}][]registrant{}}

type registrant struct {
	prefix, operator string
	selector         Selector
}

// register notes all kinds of the operator, or none of them if another operator has one already. Two spellings of one kind
// are told as far as that can be without asking a cluster; occupy knows for certain, later.
func register(m manager.Manager, o Options) error {
	registered.Lock()
	defer registered.Unlock()
	wanted := selectorsOf(o.Registrations)
	for _, other := range registered.by[m.Elected()] {
		for _, selector := range wanted {
			if other.prefix == o.Prefix && other.selector.MayMean(selector) {
				return fmt.Errorf("operator %q cannot handle %s: %w", o.Name, selector, takenError(other.operator, o.Prefix))
			}
		}
	}
	for _, selector := range wanted {
		registered.by[m.Elected()] = append(registered.by[m.Elected()], registrant{o.Prefix, o.Name, selector})
	}
	return nil
}

func takenError(operator, prefix string) error {
	return fmt.Errorf("operator %q of this process does already, with the same annotation prefix %q; give one of them another name",
		operator, prefix)
}

// occupied is the same for what is being served: by then the resource is known, whatever it was called.
var occupied sync.Map

type occupation struct {
	manager <-chan struct{}
	prefix  string
	schema.GroupResource
}

type occupant struct {
	operator string
	schema.GroupVersionKind
}

// occupy reserves a resource until it is left. One operator cannot have it twice either: its versions are the same objects.
func (e *engine) occupy(r Resource) (leave func(), err error) {
	place := occupation{e.manager.Elected(), e.Prefix, schema.GroupResource{Group: r.Group, Resource: r.Plural}}
	held, taken := occupied.LoadOrStore(place, occupant{e.Name, r.GroupVersionKind})
	if !taken {
		return func() { occupied.Delete(place) }, nil
	}
	other, _ := held.(occupant)
	if other.operator == e.Name {
		return nil, fmt.Errorf("operator %q cannot handle %s: it handles the same objects as %s already",
			e.Name, r.GroupVersionKind, other.GroupVersionKind)
	}
	return nil, fmt.Errorf("operator %q cannot handle %s: %w", e.Name, r.GroupVersionKind, takenError(other.operator, e.Prefix))
}
