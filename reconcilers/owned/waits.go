package owned

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// Wait is the condition that a handler waits for: that a child of its object, or any object, has reached a state.
type Wait struct {
	// Owner is the object of the handler, and Change identifies the change that it was called for. Body is the object
	// as the handler has it; it is used until the informer has delivered the owner.
	Owner   types.UID
	Body    map[string]any
	Handler *handlers.Handler
	Change  string
	// Kind, Namespace and Name identify the awaited object, in any version. The namespace is ignored for a
	// cluster-scoped kind.
	Kind            schema.GroupKind
	Namespace, Name string
	// Any permits an object that is not a child. It is then found by a [Lookup].
	Any bool
	// Reached is the user's function. It reports whether the object has reached the state.
	Reached func(child map[string]any) (bool, error)
	// Ended reports whether an absent child had reached the state, according to the operator's records. If it is nil,
	// an absent child has not.
	Ended func() (bool, error)
}

// wait is a pending wait. Children.mu guards its fields.
type wait struct {
	Wait

	judged  string // the version of the object at the last evaluation
	reached bool   // the result of that evaluation
	woke    bool   // it has made the handler due, or the parent of the sub-handler
}

// Await evaluates the condition for the object as it is cached. If it is not reached, the wait is kept: events of the
// object, including those during this call, request a pass over the owner, which then calls [Children.Awake].
func (c *Children) Await(w Wait) (found, reached bool, err error) {
	entry := &wait{Wait: w}
	c.mu.Lock()
	// Register before the evaluation: an event in between would be lost otherwise.
	c.drop(w.Owner, entry.same)
	if known := c.owners[w.Owner]; known != nil && known.route != nil {
		if c.waits == nil {
			c.waits = map[types.UID][]*wait{}
		}
		c.waits[w.Owner] = append(c.waits[w.Owner], entry)
		c.addTarget(entry)
		// The cache has the owner, so its body need not stay in memory.
		entry.Body = nil
	}
	c.mu.Unlock()
	object := c.awaited(entry)
	reached, err = entry.ask(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	if object != nil {
		entry.judged = object.GetResourceVersion()
	}
	if err != nil || reached {
		c.drop(w.Owner, func(other *wait) bool { return other == entry })
	}
	return object != nil, reached, err
}

// Awake reports whether a waiting handler must be called. It implements changes.Waits.
func (c *Children) Awake(owner types.UID, h *handlers.Handler, change string) bool {
	c.mu.Lock()
	var own []*wait
	for _, w := range c.waits[owner] {
		if w.within(h) {
			own = append(own, w)
		}
	}
	c.mu.Unlock()
	// A handler without a known wait is called, for example after a restart: it then waits again.
	awake := len(own) == 0
	// Each wait stores its own result, so the loop does not stop early.
	for _, w := range own {
		awake = c.wakes(w, change) || awake
	}
	return awake
}

// wakes reports whether the wait has ended, and records that it has. It calls the user's function only if the version
// of the object has changed.
func (c *Children) wakes(w *wait, change string) bool {
	object := c.awaited(w)
	c.mu.Lock()
	judged, reached := w.judged, w.reached
	c.mu.Unlock()
	if object == nil || judged != object.GetResourceVersion() {
		var err error
		reached, err = w.ask(object)
		// The handler gets the error when it evaluates the wait itself.
		reached = reached || err != nil
	}
	over := w.Change != change || reached
	c.mu.Lock()
	defer c.mu.Unlock()
	if object != nil {
		w.judged, w.reached = object.GetResourceVersion(), reached
	}
	w.woke = w.woke || over
	return over
}

// Called removes waits after a call of their handler. Without a new wait, it removes all of them. Otherwise it removes
// those that made the handler due: a sub-handler that is no longer declared never removes its own wait, which would
// cause calls without end. It implements changes.Waits.
func (c *Children) Called(owner types.UID, h *handlers.Handler, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(owner, func(w *wait) bool { return w.within(h) && (!waits || w.woke) })
}

// drop removes the waits that the function selects. The caller holds the lock.
func (c *Children) drop(owner types.UID, which func(w *wait) bool) {
	left := slices.DeleteFunc(c.waits[owner], func(w *wait) bool {
		isDropped := which(w)
		if isDropped {
			c.removeTarget(w)
		}
		return isDropped
	})
	if len(left) == 0 {
		delete(c.waits, owner)
	} else {
		c.waits[owner] = left
	}
}

// awaits reports whether any handler of the owner waits for the child. The caller holds the lock.
func (c *Children) awaits(owner types.UID, one *child) bool {
	return slices.ContainsFunc(c.waits[owner], func(w *wait) bool { return w.isFor(one) })
}

// awaited returns the awaited object from the cache. It returns nil if the object is missing, deleting, or older than
// the operator's own apply. It reads caches, so the caller must not hold the lock.
func (c *Children) awaited(w *wait) *compact.Object {
	if w.Any {
		return c.anyAwaited(w)
	}
	c.mu.Lock()
	known := c.owners[w.Owner]
	if known == nil || known.route == nil && w.Body == nil {
		c.mu.Unlock()
		return nil
	}
	route, key, body := known.route, known.key, &unstructured.Unstructured{Object: w.Body}
	var found *compact.Object
	var undecided *unstructured.Unstructured
	for _, one := range known.children {
		if one.gone || !w.isFor(one) || one.object.Deleting() || c.Author.Outdated(w.Owner, one.identity()) {
			continue
		}
		owns, perhaps := known.owns(one)
		// Before the first event of the owner, use its body from the handler.
		if route == nil {
			owns, perhaps = one.isOf(body.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(body))
		}
		if owns || perhaps {
			found = one.object
			if !owns {
				undecided = one.identity()
			}
		}
	}
	c.mu.Unlock()
	switch {
	// An owner reference has proven the child, or there is no child.
	case undecided == nil:
	case route == nil && !c.Author.Declared(w.Owner, w.Body)(undecided):
		return nil
	case route != nil && !c.isDeclared(route, key, w.Owner, undecided):
		return nil
	}
	return found
}

// isFor reports whether the child is the awaited object.
func (w *wait) isFor(one *child) bool {
	namespace := one.object.GetNamespace()
	return one.object.GetName() == w.Name && one.kind.GroupKind() == w.Kind &&
		(namespace == w.Namespace || namespace == "")
}

// within reports whether the wait belongs to the handler or to one of its sub-handlers.
func (w *wait) within(h *handlers.Handler) bool {
	return w.Handler.ID == h.ID || rootOf(w.Handler) == rootOf(h) &&
		strings.HasPrefix(w.Handler.ID, handlers.SubID(h.ID, ""))
}

// rootOf returns the id of the registered handler that a sub-handler belongs to.
func rootOf(h *handlers.Handler) string { return cmp.Or(h.Root, h.ID) }

// same reports whether both waits are of the same handler for the same object.
func (w *wait) same(other *wait) bool {
	return w.Handler.ID == other.Handler.ID && w.Kind == other.Kind && w.Namespace == other.Namespace &&
		w.Name == other.Name
}

// ask evaluates the condition. It contains panics of the user's function. For an absent child, it uses the operator's
// records.
func (w *wait) ask(object *compact.Object) (reached bool, err error) {
	if object == nil && w.Ended == nil {
		return false, nil
	} else if object == nil {
		return w.Ended()
	}
	child, err := object.Body()
	if err != nil {
		return false, err
	}
	err = panics.Contain(func() (err error) { reached, err = w.Reached(child); return err })
	return reached, err
}
