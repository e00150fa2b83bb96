package owned

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// StartWait evaluates the condition for the object as it is cached. If it is not reached, the wait is kept: events of
// the object, including those during this call, request a pass over the owner, which then calls [Children.ShouldWake].
func (c *Children) StartWait(w ChildWait) (found, reached bool, err error) {
	entry := &pendingWait{ChildWait: w}
	c.mu.Lock()
	// Register before the evaluation: an event in between would be lost otherwise.
	c.dropWaits(w.Owner, entry.isSameWait)
	if known := c.owners[w.Owner]; known != nil && known.route != nil {
		if c.waits == nil {
			c.waits = map[types.UID][]*pendingWait{}
		}
		c.waits[w.Owner] = append(c.waits[w.Owner], entry)
		c.addTarget(entry)
		// The cache has the owner, so its body need not stay in memory.
		entry.Body = nil
	}
	c.mu.Unlock()
	object := c.findAwaited(entry)
	reached, err = entry.evaluateCondition(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	if object != nil {
		entry.evaluatedVersion = object.GetResourceVersion()
	}
	if err != nil || reached {
		c.dropWaits(w.Owner, func(other *pendingWait) bool { return other == entry })
	}
	return object != nil, reached, err
}

// ShouldWake reports whether a waiting handler must be called. It implements changes.Waits.
func (c *Children) ShouldWake(owner types.UID, h *handlers.Handler, change string) bool {
	c.mu.Lock()
	var own []*pendingWait
	for _, w := range c.waits[owner] {
		if w.belongsTo(h) {
			own = append(own, w)
		}
	}
	c.mu.Unlock()
	// A handler without a known wait is called, for example after a restart: it then waits again.
	awake := len(own) == 0
	// Each wait stores its own result, so the loop does not stop early.
	for _, w := range own {
		awake = c.isWaitOver(w, change) || awake
	}
	return awake
}

// isWaitOver reports whether the wait has ended, and records that it has. It calls the user's function only if the
// version of the object has changed.
func (c *Children) isWaitOver(w *pendingWait, change string) bool {
	object := c.findAwaited(w)
	c.mu.Lock()
	judged, reached := w.evaluatedVersion, w.reached
	c.mu.Unlock()
	if object == nil || judged != object.GetResourceVersion() {
		var err error
		reached, err = w.evaluateCondition(object)
		// The handler gets the error when it evaluates the wait itself.
		reached = reached || err != nil
	}
	over := w.Change != change || reached
	c.mu.Lock()
	defer c.mu.Unlock()
	if object != nil {
		w.evaluatedVersion, w.reached = object.GetResourceVersion(), reached
	}
	w.hasWoken = w.hasWoken || over
	return over
}

// NoteCall removes waits after a call of their handler. Without a new wait, it removes all of them. Otherwise it
// removes those that made the handler due: a sub-handler that is no longer declared never removes its own wait, which
// would cause calls without end. It implements changes.Waits.
func (c *Children) NoteCall(owner types.UID, h *handlers.Handler, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropWaits(owner, func(w *pendingWait) bool { return w.belongsTo(h) && (!waits || w.hasWoken) })
}

// dropWaits removes the waits that the function selects. The caller holds the lock.
func (c *Children) dropWaits(owner types.UID, which func(w *pendingWait) bool) {
	left := slices.DeleteFunc(c.waits[owner], func(w *pendingWait) bool {
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

// hasWaitFor reports whether any handler of the owner waits for the child. The caller holds the lock.
func (c *Children) hasWaitFor(owner types.UID, one *child) bool {
	return slices.ContainsFunc(c.waits[owner], func(w *pendingWait) bool { return w.isFor(one) })
}

// findAwaited returns the awaited object from the cache. It returns nil if the object is missing, deleting, or older
// than the operator's own apply. It reads caches, so the caller must not hold the lock.
func (c *Children) findAwaited(w *pendingWait) *compact.CachedObject {
	if w.AllowAnyObject {
		return c.findAnyObject(w)
	}
	c.mu.Lock()
	known := c.owners[w.Owner]
	if known == nil || known.route == nil && w.Body == nil {
		c.mu.Unlock()
		return nil
	}
	route, key, body := known.route, known.key, &unstructured.Unstructured{Object: w.Body}
	var found *compact.CachedObject
	var undecided *unstructured.Unstructured
	for _, one := range known.children {
		if one.gone || !w.isFor(one) || one.object.IsDeleting() || c.Author.IsOutdated(w.Owner, one.identityObject()) {
			continue
		}
		owns, perhaps := known.isOwnerOf(one)
		// Before the first event of the owner, use its body from the handler.
		if route == nil {
			owns, perhaps = one.isChildOf(body.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(body))
		}
		if owns || perhaps {
			found = one.object
			if !owns {
				undecided = one.identityObject()
			}
		}
	}
	c.mu.Unlock()
	switch {
	// An owner reference has proven the child, or there is no child.
	case undecided == nil:
	case route == nil && !c.Author.DeclaredMatcher(w.Owner, w.Body)(undecided):
		return nil
	case route != nil && !c.isDeclared(route, key, w.Owner, undecided):
		return nil
	}
	return found
}

// isFor reports whether the child is the awaited object.
func (w *pendingWait) isFor(one *child) bool {
	namespace := one.object.GetNamespace()
	return one.object.GetName() == w.Name && one.kind.GroupKind() == w.Kind &&
		(namespace == w.Namespace || namespace == "")
}

// belongsTo reports whether the wait belongs to the handler or to one of its sub-handlers.
func (w *pendingWait) belongsTo(h *handlers.Handler) bool {
	return w.Handler.ID == h.ID || rootOf(w.Handler) == rootOf(h) &&
		strings.HasPrefix(w.Handler.ID, handlers.SubID(h.ID, ""))
}

// rootOf returns the id of the registered handler that a sub-handler belongs to.
func rootOf(h *handlers.Handler) string { return cmp.Or(h.Root, h.ID) }

// isSameWait reports whether both waits are of the same handler for the same object.
func (w *pendingWait) isSameWait(other *pendingWait) bool {
	return w.Handler.ID == other.Handler.ID && w.Kind == other.Kind && w.Namespace == other.Namespace &&
		w.Name == other.Name
}

// evaluateCondition evaluates the condition. It contains panics of the user's function. For an absent child, it uses
// the operator's records.
func (w *pendingWait) evaluateCondition(object *compact.CachedObject) (reached bool, err error) {
	if object == nil && w.WasReached == nil {
		return false, nil
	} else if object == nil {
		return w.WasReached()
	}
	child, err := object.Body()
	if err != nil {
		return false, err
	}
	err = panics.Contain(func() (err error) { reached, err = w.IsReached(child); return err })
	return reached, err
}
