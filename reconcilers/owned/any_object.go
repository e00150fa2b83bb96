package owned

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// targetKey returns the key of the wait.
func (w *pendingWait) targetKey() target { return target{w.Kind, w.Name} }

// addTarget indexes the wait if it is for any object. The caller holds the lock.
func (c *Children) addTarget(w *pendingWait) {
	if !w.AllowAnyObject {
		return
	}
	if c.targets == nil {
		c.targets = map[target]map[*pendingWait]bool{}
	}
	if c.targets[w.targetKey()] == nil {
		c.targets[w.targetKey()] = map[*pendingWait]bool{}
	}
	c.targets[w.targetKey()][w] = true
}

// removeTarget reverts [Children.addTarget]. It has no effect on a wait that was not added. The caller holds the lock.
func (c *Children) removeTarget(w *pendingWait) {
	delete(c.targets[w.targetKey()], w)
	if len(c.targets[w.targetKey()]) == 0 {
		delete(c.targets, w.targetKey())
	}
}

// routesOfWaits returns functions that request passes over the owners whose handlers wait for the object, child or not.
// The caller holds the lock, and must call the functions without it.
func (c *Children) routesOfWaits(s *ChildSource, object *compact.CachedObject) (routes []func()) {
	if s.lookup == nil {
		return nil
	}
	for w := range c.targets[target{s.kind.GroupKind(), object.GetName()}] {
		known := c.owners[w.Owner]
		namespace := object.GetNamespace()
		// A cluster-scoped object matches any namespace of the wait.
		if known == nil || known.route == nil || namespace != "" && namespace != w.Namespace {
			continue
		}
		route, key := known.route, known.key
		routes = append(routes, func() { route.enqueue(key) })
	}
	return routes
}

// findAnyObject is [Children.findAwaited] for waits for any object: it returns the object unless it is missing,
// deleting, or outdated. It reads caches, so the caller must not hold the lock.
func (c *Children) findAnyObject(w *pendingWait) *compact.CachedObject {
	c.mu.Lock()
	// A run may end meanwhile, which modifies the slice.
	sources := slices.Clone(c.sources)
	c.mu.Unlock()
	for _, s := range sources {
		// The wait does not know the scope of its kind, so both keys are tried.
		for _, namespace := range []string{w.Namespace, ""} {
			object := s.lookup(w.Kind, types.NamespacedName{Namespace: namespace, Name: w.Name})
			if object == nil || object.IsDeleting() {
				continue
			}
			seen := &child{kind: w.Kind.WithVersion(""), object: object}
			if !c.Author.IsOutdated(w.Owner, seen.identityObject()) {
				return object
			}
		}
	}
	return nil
}
