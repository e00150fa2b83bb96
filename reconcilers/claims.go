package reconcilers

import (
	"fmt"
	"slices"
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
	places           []string
	selector         Selector
}

// sharing is where two operators remember the same kind, if they do.
func (r registrant) sharing(prefix string, places []string) string {
	if r.prefix == prefix {
		return samePrefix(prefix)
	}
	for _, place := range places {
		if slices.Contains(r.places, place) {
			return fmt.Sprintf("its memory at the same place, %s; give one of them another storage", place)
		}
	}
	return ""
}

func samePrefix(prefix string) string {
	return fmt.Sprintf("the same annotation prefix %q; give one of them another name", prefix)
}

// register notes all kinds of the operator, or none of them if another operator has one already. Two spellings of one
// kind are told as far as that can be without asking a cluster; occupy knows for certain, later.
func register(m manager.Manager, o Options) error {
	places, err := o.Places()
	if err != nil {
		return fmt.Errorf("asking the storages of operator %q for their places: %w", o.Name, err)
	}
	registered.Lock()
	defer registered.Unlock()
	wanted := selectorsOf(o.Registrations)
	for _, other := range registered.by[m.Elected()] {
		for _, selector := range wanted {
			if shared := other.sharing(o.Prefix, places); shared != "" && other.selector.MayMean(selector) {
				return fmt.Errorf(
					"operator %q cannot handle %s: %w", o.Name, selector, takenError(other.operator, shared),
				)
			}
		}
	}
	for _, selector := range wanted {
		registered.by[m.Elected()] = append(registered.by[m.Elected()], registrant{o.Prefix, o.Name, places, selector})
	}
	return nil
}

func takenError(operator, shared string) error {
	return fmt.Errorf("operator %q of this process does already, with %s", operator, shared)
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

// occupy reserves a resource until it is left. One operator cannot have it twice either: its versions are the same
// objects.
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
	return nil, fmt.Errorf(
		"operator %q cannot handle %s: %w", e.Name, r.GroupVersionKind,
		takenError(other.operator, samePrefix(e.Prefix)),
	)
}
