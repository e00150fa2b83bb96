package owned

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// Author declares children for their owners, and repairs them. Most methods run on the goroutines of informers while
// the lock of [Children] is held, so they must not send requests.
type Author interface { //nolint:interfacebloat // all of it is about the operator's own declarations
	// IsOwnWrite reports whether the operator itself wrote this version of a child. Handlers are not called for own
	// writes.
	IsOwnWrite(child types.UID, version string) bool
	// IsOutdated reports whether the operator itself has applied the child of the owner after this state. The child has
	// only its kind, namespace, name, uid and version.
	IsOutdated(owner types.UID, child *unstructured.Unstructured) bool
	// DeclaredMatcher returns a function that reports whether the owner has declared a child: in this process, or by a
	// record in the body of the owner. It considers only the kind, namespace and name of the child.
	DeclaredMatcher(owner types.UID, body map[string]any) func(child *unstructured.Unstructured) bool
	// NeedsRepair reports whether the next repair must handle the child, because it is deleted or differs from its
	// declaration. A deleted child is passed in its last known state; unseen means that it may have changed before its
	// deletion.
	NeedsRepair(owner types.UID, child *unstructured.Unstructured, gone, unseen bool) bool
	// UnsavedRecords returns the change of the owner that stores how its children have ended, and the names of the
	// annotations that it changes. It returns nil if everything is stored.
	UnsavedRecords(owner map[string]any) (change patching.Transform, annotations []string)
	// RepairChildren applies the drifted children of an owner again. It returns the delay of the next repair, or nil if
	// there is none to do.
	RepairChildren(ctx context.Context, owner map[string]any, events handlers.EventPoster) (again *time.Duration)
	// ForgetChild is called when a child is deleted.
	ForgetChild(child types.UID)
	// Forget is called when an owner is deleted, or when its handlers are no longer called.
	Forget(owner types.UID)
}

// Children holds the relations between the objects of one operator and their children, for all kinds that are watched.
// It is safe for concurrent use.
type Children struct {
	// Label is the label that holds the uid of the owner on a child, in addition to owner references.
	Label string
	// Author declares and repairs children.
	Author Author

	// mu guards all fields below and everything they refer to. It must not be held while caches are read or passes are
	// requested, because these take locks of their own.
	mu            sync.Mutex
	owners        map[types.UID]*owner
	ownersByChild map[types.UID][]types.UID               // the owners of each child
	waits         map[types.UID][]*pendingWait            // by owner
	targets       map[target]map[*pendingWait]bool        // the waits for any object
	sources       []*ChildSource                          // those with a lookup
	parents       map[schema.GroupKind][]schema.GroupKind // by kind of children
}

// owner is the entry of an object that other objects refer to as their owner. It may be an object of a kind without
// handlers.
type owner struct {
	route       *Route               // of its handlers; nil until its first event
	key         types.NamespacedName // valid if route is set
	children    map[types.UID]*child
	saveBackoff saveBackoff
}

// child is the entry of one object below one owner that it refers to.
type child struct {
	claim        claim
	source       *ChildSource
	kind         schema.GroupVersionKind
	object       *compact.CachedObject       // the current state, or the last one of a deleted child
	listed       bool                        // it existed when the operator started to watch
	gone         bool                        // it is deleted, or no longer refers to the owner
	progressByID map[string]*handlerProgress // by handler id
}

// identityObject returns the child without the fields that would have to be decoded.
func (c *child) identityObject() *unstructured.Unstructured {
	identity := &unstructured.Unstructured{}
	identity.SetGroupVersionKind(c.kind)
	identity.SetNamespace(c.object.GetNamespace())
	identity.SetName(c.object.GetName())
	identity.SetUID(c.object.GetUID())
	identity.SetResourceVersion(c.object.GetResourceVersion())
	return identity
}

// handlerProgress is the progress of one handler with one child.
type handlerProgress struct {
	version string            // of the last finished call; empty if no call has finished
	account execution.Account // of its attempts since then
	calling bool              // keeps the entry of a deleted child until the call returns
}

// ownerEntry returns the entry of an owner, and creates it if necessary. The caller holds the lock.
func (c *Children) ownerEntry(uid types.UID) *owner {
	known := c.owners[uid]
	if known == nil {
		known = &owner{children: map[types.UID]*child{}}
		if c.owners == nil {
			c.owners, c.ownersByChild = map[types.UID]*owner{}, map[types.UID][]types.UID{}
		}
		c.owners[uid] = known
	}
	return known
}

// removeEmptyOwner removes the entry of an owner that has neither handlers nor children. The caller holds the lock.
func (c *Children) removeEmptyOwner(uid types.UID, known *owner) {
	if known.route == nil && len(known.children) == 0 {
		delete(c.owners, uid)
	}
}

// Route connects the owners of one kind with their controller while it runs.
type Route struct {
	children *Children
	kind     schema.GroupKind
	// owning handlers of kinds with handlers here
	parentHandlers []*handlers.Handler
	latestOwner    func(key types.NamespacedName, uid types.UID) map[string]any // reads the owners' cache
	enqueue        func(key types.NamespacedName)                               // requests a pass over an owner
}

// StartRoute starts a run of the controller of owners of this kind. The cache is that of the owners. Enqueue must
// request a pass over an owner; it is called when something happens to a child that a handler is registered for.
func (c *Children) StartRoute(
	kind schema.GroupKind, tending []*handlers.Handler, cache kind.Cache, enqueue func(key types.NamespacedName),
) *Route {
	r := &Route{children: c, kind: kind, latestOwner: cache.Latest, enqueue: enqueue}
	for _, h := range tending {
		// Without a function, the handler only lets its objects wait for children and repairs them.
		if h.Call != nil {
			r.parentHandlers = append(r.parentHandlers, h.ParentHandler)
		}
	}
	return r
}

// NoteEvent runs for each event of an owner. Children can be seen before their owner; from here on, they cause passes.
func (r *Route) NoteEvent(uid types.UID, key types.NamespacedName) {
	c := r.children
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.ownerEntry(uid)
	known.route, known.key = r, key
}

// NoteDeleted runs when an owner is deleted.
func (r *Route) NoteDeleted(uid types.UID) {
	c := r.children
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.owners[uid]; known != nil {
		c.resetOwner(uid, known)
	}
}

// EndRun ends the run. No handler of these owners is called any more.
func (r *Route) EndRun() {
	c := r.children
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, known := range c.owners {
		if known.route == r {
			c.resetOwner(uid, known)
		}
	}
}

// resetOwner removes the progress of all handlers of the owner, and its waits. Its children stay, because their
// informer still runs. They are marked as listed: a later run has not seen them appear. The caller holds the lock.
func (c *Children) resetOwner(uid types.UID, known *owner) {
	known.route, known.saveBackoff = nil, saveBackoff{}
	c.dropWaits(uid, func(*pendingWait) bool { return true })
	c.Author.Forget(uid)
	for child, one := range known.children {
		if one.progressByID, one.listed = nil, true; one.gone {
			delete(known.children, child)
		}
	}
	c.removeEmptyOwner(uid, known)
}

// servesSource reports whether any handler is registered for children of the source.
func (r *Route) servesSource(from *ChildSource) bool {
	return slices.ContainsFunc(r.parentHandlers, func(kind *handlers.Handler) bool { return from.servesHandler(kind) })
}

// accountAfter returns the account after one more failed attempt.
func accountAfter(before execution.Account, outcome execution.Outcome, now time.Time) execution.Account {
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

// target is the key by which an event finds the waits for any object. The namespace is compared separately, because a
// wait for a cluster-scoped object may have a namespace.
type target struct {
	kind schema.GroupKind
	name string
}

// claim is the part of an object that refers to one owner. It is not trustworthy: any client that may write the object
// can set it.
type claim struct {
	uid        types.UID
	references []Reference
	labelled   bool // by the label with the uid of the owner
}

// Reference is the kind and name of the owner in an owner reference. The uid is compared separately.
type Reference struct {
	Kind schema.GroupKind
	Name string
}

// ReferenceOf converts an owner reference.
func ReferenceOf(reference metav1.OwnerReference) Reference {
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		// An invalid version does not name any owner. The zero value matches no kind.
		return Reference{}
	}
	return Reference{schema.GroupKind{Group: version.Group, Kind: reference.Kind}, reference.Name}
}

// NamesOwner reports whether the reference, in an object of this namespace, names an owner of this kind and key. As for
// the garbage collector, a namespaced owner can only own objects of its own namespace.
func (r Reference) NamesOwner(kind schema.GroupKind, owner types.NamespacedName, namespace string) bool {
	return r.Kind == kind && r.Name == owner.Name && (owner.Namespace == "" || owner.Namespace == namespace)
}

// pendingWait is a pending wait. Children.mu guards its fields.
type pendingWait struct {
	ChildWait

	evaluatedVersion string // the version of the object at the last evaluation
	reached          bool   // the result of that evaluation
	hasWoken         bool   // it has made the handler due, or the parent of the sub-handler
}

// ChildWait is the condition that a handler waits for: that a child of its object, or any object, has reached a state.
type ChildWait struct {
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
	// AllowAnyObject permits an object that is not a child. It is then found by a [CacheLookup].
	AllowAnyObject bool
	// IsReached is the user's function. It reports whether the object has reached the state.
	IsReached func(child map[string]any) (bool, error)
	// WasReached reports whether an absent child had reached the state, according to the operator's records. If it is
	// nil, an absent child has not.
	WasReached func() (bool, error)
}

// saveBackoff delays the next write of the records of ended children. The zero value permits it at once.
type saveBackoff struct {
	delay     time.Duration // after the last refusal
	notBefore time.Time     // no write may begin before
}

// ChildSource receives the events of one kind of children, in one namespace or in all, from their controller while it
// runs.
type ChildSource struct {
	children       *Children
	parentHandlers []*handlers.Handler     // the owning handlers of the kind
	kind           schema.GroupVersionKind // of the last object; the entries share its strings
	lookup         CacheLookup
}

// CacheLookup returns an object from the cache of an informer, whether it is a child or not; nil if it does not exist.
// It must be safe for concurrent use.
type CacheLookup func(kind schema.GroupKind, key types.NamespacedName) *compact.CachedObject

// currentTime returns the current time in UTC, as records store it.
func currentTime() time.Time { return time.Now().UTC() }
