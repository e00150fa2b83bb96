package owned

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Author declares children for their owners, and repairs them. Most methods are called on the goroutines of informers
// while Children is locked: they must not wait for requests.
type Author interface { //nolint:interfacebloat // all of it is about the operator's own declarations
	// Wrote reports whether the operator itself has written this version of a child.
	Wrote(child types.UID, version string) bool
	// Outdated reports whether the operator itself has applied the child of the owner since it was in this state. The
	// child has its kind, its namespace and name, its uid and version, and nothing else.
	Outdated(owner types.UID, child *unstructured.Unstructured) bool
	// Declared returns a function that is true for the children that the owner has declared: in this process, or by a
	// record in the body of the owner. Of a child, its kind, namespace and name count.
	Declared(owner types.UID, body map[string]any) func(child *unstructured.Unstructured) bool
	// Drifted reports whether the next Repair is to repair the child: it is gone, or not as it was declared. The child
	// is in its last known state if it is gone; unseen says that it may have changed before it went.
	Drifted(owner types.UID, child *unstructured.Unstructured, gone, unseen bool) bool
	// Unsaved returns the change of the owner that remembers how its children have ended, and the annotations that it
	// changes; nil if the owner remembers it all.
	Unsaved(owner map[string]any) (change patching.Transform, annotations []string)
	// Repair applies the drifted children of an owner again, and returns the delay of the next repair; nil is never.
	Repair(ctx context.Context, owner map[string]any, events handlers.Poster) (again *time.Duration)
	// Gone is called at the end of a child.
	Gone(child types.UID)
	// Forget is called for an owner that is gone, or whose handlers are no longer called.
	Forget(owner types.UID)
}

// Children are those of the objects of one operator, as far as their kinds are watched. Any goroutine may use it.
type Children struct {
	// Label is that of children with the uid of their owner, beside owner references.
	Label string
	// Author declares children and repairs them.
	Author Author

	mu      sync.Mutex
	owners  map[types.UID]*owner
	of      map[types.UID][]types.UID               // the owners of each child
	waits   map[types.UID][]*wait                   // of each owner
	targets map[target]map[*wait]bool               // those for any object
	sources []*Source                               // with a lookup
	parents map[schema.GroupKind][]schema.GroupKind // of each kind of children
}

// owner is an object that owns others, be it handled here or not.
type owner struct {
	route    *Route // of its handlers; nil as long as it is not seen
	key      types.NamespacedName
	children map[types.UID]*child
	saving   saving
}

// child is one object that says that another one owns it.
type child struct {
	claim  claim
	source *Source
	kind   schema.GroupVersionKind
	object *compact.Object // as it is by now, or was at last
	listed bool            // it was there when the operator began to look
	gone   bool
	told   map[string]*told // by handler
}

// identity is the child without all that would have to be decoded.
func (c *child) identity() *unstructured.Unstructured {
	identity := &unstructured.Unstructured{}
	identity.SetGroupVersionKind(c.kind)
	identity.SetNamespace(c.object.GetNamespace())
	identity.SetName(c.object.GetName())
	identity.SetUID(c.object.GetUID())
	identity.SetResourceVersion(c.object.GetResourceVersion())
	return identity
}

// told is what one handler knows of one child.
type told struct {
	version string            // the one that it was called for at last; empty if it never was to the end
	account execution.Account // of its attempts since then
	calling bool              // a call is running, so the child stays in memory to report its deletion
}

// owner gives the entry of an owner.
func (c *Children) owner(uid types.UID) *owner {
	known := c.owners[uid]
	if known == nil {
		known = &owner{children: map[types.UID]*child{}}
		if c.owners == nil {
			c.owners, c.of = map[types.UID]*owner{}, map[types.UID][]types.UID{}
		}
		c.owners[uid] = known
	}
	return known
}

// tidy drops an owner of which nothing is known.
func (c *Children) tidy(uid types.UID, known *owner) {
	if known.route == nil && len(known.children) == 0 {
		delete(c.owners, uid)
	}
}

// Route is the way to the handlers of the owners of one kind, as long as its controller runs.
type Route struct {
	children *Children
	kind     schema.GroupKind
	tended   []*handlers.Handler
	latest   func(key types.NamespacedName, uid types.UID) map[string]any
	enqueue  func(key types.NamespacedName)
}

// Route begins a run of the controller of owners of this kind, which the cache has: enqueue has it make a pass over one
// of them if something has happened that one of the handlers is for.
func (c *Children) Route(
	kind schema.GroupKind, tending []*handlers.Handler, cache kind.Cache, enqueue func(key types.NamespacedName),
) *Route {
	r := &Route{children: c, kind: kind, latest: cache.Latest, enqueue: enqueue}
	for _, h := range tending {
		if h.Call != nil {
			r.tended = append(r.tended, h.Owned)
		}
	}
	return r
}

// Seen is told of every event of an owner.
func (r *Route) Seen(uid types.UID, key types.NamespacedName) {
	c := r.children
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.owner(uid)
	known.route, known.key = r, key
}

// Gone is told of the end of an owner.
func (r *Route) Gone(uid types.UID) {
	c := r.children
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.owners[uid]; known != nil {
		c.part(uid, known)
	}
}

// End ends the run: nobody is called any more.
func (r *Route) End() {
	c := r.children
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, known := range c.owners {
		if known.route == r {
			c.part(uid, known)
		}
	}
}

// part forgets what the handlers of the owner were told.
func (c *Children) part(uid types.UID, known *owner) {
	known.route, known.saving = nil, saving{}
	c.drop(uid, func(*wait) bool { return true })
	c.Author.Forget(uid)
	for child, one := range known.children {
		if one.told, one.listed = nil, true; one.gone {
			delete(known.children, child)
		}
	}
	c.tidy(uid, known)
}

// tends tells whether any handler is told of children from there.
func (r *Route) tends(from *Source) bool {
	return slices.ContainsFunc(r.tended, func(kind *handlers.Handler) bool { return from.has(kind) })
}

// retried is the account of the attempts with one more.
func retried(before execution.Account, outcome execution.Outcome, now time.Time) execution.Account {
	if before.Started.IsZero() {
		before.Started = now
	}
	before.Retries++
	before.Trace = outcome.Trace
	before.Until = now
	if outcome.Delay != nil {
		before.Until = now.Add(*outcome.Delay)
	}
	return before
}
