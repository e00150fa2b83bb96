package owned

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// target is what waits for any object are found by. The namespace is compared apart: a wait for an object of a kind
// without namespaces may have one.
type target struct {
	kind schema.GroupKind
	name string
}

func (w *wait) target() target { return target{w.Kind, w.Name} }

// addTarget lets events of any object find the wait.
func (c *Children) addTarget(w *wait) {
	if !w.Any {
		return
	}
	if c.targets == nil {
		c.targets = map[target]map[*wait]bool{}
	}
	if c.targets[w.target()] == nil {
		c.targets[w.target()] = map[*wait]bool{}
	}
	c.targets[w.target()][w] = true
}

// removeTarget reverts addTarget.
func (c *Children) removeTarget(w *wait) {
	delete(c.targets[w.target()], w)
	if len(c.targets[w.target()]) == 0 {
		delete(c.targets, w.target())
	}
}

// waitsFor returns functions that request passes over the owners whose handlers wait for the object. The object may be
// a child or not. The caller holds the lock.
func (c *Children) waitsFor(s *Source, object *compact.Object) (routes []func()) {
	if s.lookup == nil {
		return nil
	}
	for w := range c.targets[target{s.kind.GroupKind(), object.GetName()}] {
		known := c.owners[w.Owner]
		namespace := object.GetNamespace()
		if known == nil || known.route == nil || namespace != "" && namespace != w.Namespace {
			continue
		}
		route, key := known.route, known.key
		routes = append(routes, func() { route.enqueue(key) })
	}
	return routes
}

// anyAwaited is the object as far as it is there, as for awaited. It looks into caches, so c.mu must not be held.
func (c *Children) anyAwaited(w *wait) *compact.Object {
	c.mu.Lock()
	sources := slices.Clone(c.sources)
	c.mu.Unlock()
	for _, s := range sources {
		for _, namespace := range []string{w.Namespace, ""} {
			object := s.lookup(w.Kind, types.NamespacedName{Namespace: namespace, Name: w.Name})
			if object == nil || object.Deleting() {
				continue
			}
			seen := &child{kind: w.Kind.WithVersion(""), object: object}
			if !c.Author.Outdated(w.Owner, seen.identity()) {
				return object
			}
		}
	}
	return nil
}
