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

// Wait is what a handler waits for: that a child of its object, or any object, is as it should be.
type Wait struct {
	// Owner is the object, and Handler whose wait it is; Change is the change that it is called for. Body is the object
	// as the handler has it, which counts as long as no informer has seen it.
	Owner   types.UID
	Body    map[string]any
	Handler *handlers.Handler
	Change  string
	// Kind, Namespace and Name are those of the child, of any version. The namespace is ignored for a cluster-scoped
	// kind.
	Kind            schema.GroupKind
	Namespace, Name string
	// Any is for an object that does not have to be a child: one that a Lookup finds.
	Any bool
	// Reached reports whether the child is as it should be. It is the function's own.
	Reached func(child map[string]any) (bool, error)
	// Ended reports whether an absent child was as it should be, according to the operator's records; nil is never.
	Ended func() (bool, error)
}

// wait is a wait that goes on.
type wait struct {
	Wait

	judged  string // the version of the child that was looked at last
	reached bool   // that one was as it should be
	woke    bool   // the handler, or one that it is a part of, has been made due by it
}

// Await looks at the child as it is known by now. If it is not as it should be, the wait goes on: the owner gets a pass
// when something happens to the child, be it during this call, and Awake is what to ask then.
func (c *Children) Await(w Wait) (found, reached bool, err error) {
	entry := &wait{Wait: w}
	c.mu.Lock()
	c.drop(w.Owner, entry.same)
	if known := c.owners[w.Owner]; known != nil && known.route != nil {
		if c.waits == nil {
			c.waits = map[types.UID][]*wait{}
		}
		c.waits[w.Owner] = append(c.waits[w.Owner], entry)
		c.addTarget(entry)
		entry.Body = nil // the cache has it
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

// Awake tells whether a waiting handler is to be called: see changes.Waits.
func (c *Children) Awake(owner types.UID, h *handlers.Handler, change string) bool {
	c.mu.Lock()
	var own []*wait
	for _, w := range c.waits[owner] {
		if w.within(h) {
			own = append(own, w)
		}
	}
	c.mu.Unlock()
	awake := len(own) == 0
	for _, w := range own {
		awake = c.wakes(w, change) || awake
	}
	return awake
}

// wakes tells whether the wait is over, and notes that it has told so.
func (c *Children) wakes(w *wait, change string) bool {
	object := c.awaited(w)
	c.mu.Lock()
	judged, reached := w.judged, w.reached
	c.mu.Unlock()
	if object == nil || judged != object.GetResourceVersion() {
		var err error
		reached, err = w.ask(object)
		reached = reached || err != nil // whose error it is when the handler asks again
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

// Called forgets the waits of a handler whose call has ended without one, and otherwise those that have made it due:
// that of a sub-handler which is not declared any more must not call its handler for ever.
func (c *Children) Called(owner types.UID, h *handlers.Handler, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(owner, func(w *wait) bool { return w.within(h) && (!waits || w.woke) })
}

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

// awaits tells whether any handler of the owner waits for the child.
func (c *Children) awaits(owner types.UID, one *child) bool {
	return slices.ContainsFunc(c.waits[owner], func(w *wait) bool { return w.isFor(one) })
}

// awaited is the child as far as it is there: not one that is being deleted, nor as it was before it was applied.
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
	case undecided == nil:
	case route == nil && !c.Author.Declared(w.Owner, w.Body)(undecided):
		return nil
	case route != nil && !c.isDeclared(route, key, w.Owner, undecided):
		return nil
	}
	return found
}

func (w *wait) isFor(one *child) bool {
	namespace := one.object.GetNamespace()
	return one.object.GetName() == w.Name && one.kind.GroupKind() == w.Kind &&
		(namespace == w.Namespace || namespace == "")
}

// within tells whether it is a wait of the handler, or of a part of it.
func (w *wait) within(h *handlers.Handler) bool {
	return w.Handler.ID == h.ID || rootOf(w.Handler) == rootOf(h) &&
		strings.HasPrefix(w.Handler.ID, handlers.SubID(h.ID, ""))
}

func rootOf(h *handlers.Handler) string { return cmp.Or(h.Root, h.ID) }

// same tells whether it is for the same child and the same handler.
func (w *wait) same(other *wait) bool {
	return w.Handler.ID == other.Handler.ID && w.Kind == other.Kind && w.Namespace == other.Namespace &&
		w.Name == other.Name
}

// ask contains the function of the user. Of a child that is not there, the operator may remember how it has ended.
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
