package owned

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// The types of events of children. A child that existed when the operator started to watch has the empty type.
const (
	Listed   = ""
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Vanished = source.Vanished // deleted; the object is an earlier state of the child
)

// StartSource starts a run of the controller of children. The lookup is nil if handlers may wait only for children.
func (c *Children) StartSource(owning []*handlers.Handler, lookup CacheLookup) *ChildSource {
	s := &ChildSource{children: c, lookup: lookup}
	for _, h := range owning {
		s.parentHandlers = append(s.parentHandlers, h.ParentHandler)
	}
	if lookup != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sources = append(c.sources, s)
	}
	return s
}

// servesHandler reports whether the source is that of the owning handler.
func (s *ChildSource) servesHandler(kind *handlers.Handler) bool {
	return slices.Contains(s.parentHandlers, kind)
}

// HandleEvent handles one event of a child: it updates the entries and requests passes over the owners. It returns an
// error if the object cannot be decoded; its owners are then not notified.
func (s *ChildSource) HandleEvent(eventType string, object *compact.CachedObject) error {
	decoded, err := object.Unstructured()
	if err != nil {
		return err
	}
	isUnseen := eventType == Vanished
	if isUnseen {
		eventType = Deleted
	}
	c := s.children
	c.mu.Lock()
	var routes []func()
	uid := object.GetUID()
	// Keep the old strings if they are equal, so that all entries share them.
	if kind := decoded.GroupVersionKind(); kind != s.kind {
		s.kind = kind
	}
	before, now, claims := c.ownersByChild[uid], []types.UID(nil), c.claimsOf(decoded)
	isClaimed := make(map[types.UID]bool, len(claims))
	for _, one := range claims {
		isClaimed[one.uid] = true
	}
	if eventType == Deleted {
		c.Author.ForgetChild(uid)
	} else {
		for _, one := range claims {
			now = append(now, one.uid)
			if c.updateChild(s, one, childState{object, decoded, false}, eventType == Listed) {
				routes = append(routes, c.passRequest(one.uid, decoded))
			}
		}
		routes = append(routes, c.routesOfWaits(s, object)...)
	}
	// Former owners lose a deleted child, or one that no longer refers to them.
	for _, owner := range before {
		if isClaimed[owner] && eventType != Deleted {
			continue
		}
		if c.removeChild(s, owner, childState{object, decoded, isUnseen}, isClaimed[owner]) {
			routes = append(routes, c.passRequest(owner, nil))
		}
	}
	if len(now) == 0 {
		delete(c.ownersByChild, uid)
	} else {
		c.ownersByChild[uid] = now
	}
	c.mu.Unlock()
	// Requests read caches, so they are made without the lock.
	for _, enqueue := range routes {
		enqueue()
	}
	return nil
}

// childState is one observation of a child. Only the compact form is kept; the decoded form is for use during the
// event.
type childState struct {
	object           *compact.CachedObject
	decoded          *unstructured.Unstructured
	hasMissedChanges bool // deleted, after changes that the informer may have missed
}

// passRequest returns a function that requests a pass over the owner. If it is undecided whether the object is a child,
// the function first finds that out, without the lock. Seen is nil for an object that was a child before. The caller
// holds the lock.
func (c *Children) passRequest(of types.UID, seen *unstructured.Unstructured) func() {
	known := c.owners[of]
	route, key, undecided := known.route, known.key, false
	if seen != nil {
		_, undecided = known.isOwnerOf(known.children[seen.GetUID()])
	}
	return func() {
		if !undecided || c.isDeclared(route, key, of, seen) {
			route.enqueue(key)
		}
	}
}

// updateChild stores the current state of a child. It reports whether the owner may need a pass. The caller holds the
// lock.
func (c *Children) updateChild(s *ChildSource, claimed claim, seen childState, listed bool) bool {
	uid := claimed.uid
	known := c.ownerEntry(uid)
	one := known.children[seen.object.GetUID()]
	if one == nil {
		one = &child{listed: listed}
		known.children[seen.object.GetUID()] = one
	}
	one.claim, one.source, one.kind, one.object, one.gone = claimed, s, s.kind, seen.object, false
	// Author must see every event, also if a handler needs the pass anyway.
	drifted := c.Author.NeedsRepair(uid, seen.decoded, false, false)
	owns, undecided := known.isOwnerOf(one)
	return known.route != nil && (drifted || (owns || undecided) &&
		(known.route.servesSource(s) || c.hasWaitFor(uid, one)))
}

// removeChild records that the object is no longer a child of the owner, and reports whether the owner needs a pass. It
// is called only for owners in Children.of, so both entries exist. The child keeps the last state in which it was a
// child: for other objects, the informer may cache only their identity. The caller holds the lock.
func (c *Children) removeChild(s *ChildSource, uid types.UID, seen childState, wasChild bool) bool {
	known := c.owners[uid]
	one := known.children[seen.object.GetUID()]
	if one.gone = true; wasChild {
		one.object = seen.object
	}
	// Progress without a finished call needs no deletion event, unless a call is running.
	maps.DeleteFunc(one.progressByID, func(_ string, t *handlerProgress) bool { return t.version == "" && !t.calling })
	drifted := c.Author.NeedsRepair(uid, seen.decoded, true, seen.hasMissedChanges)
	owned, _ := known.isOwnerOf(one)
	// The operator may have a record of how an absent child ended, so waits for it are checked, too.
	awaited := owned && c.hasWaitFor(uid, one)
	// Without a call for the child, no handler needs its deletion.
	if len(one.progressByID) == 0 {
		delete(known.children, seen.object.GetUID())
		c.removeEmptyOwner(uid, known)
	} else {
		owned = true
	}
	return known.route != nil && (drifted || awaited || owned && known.route.servesSource(s))
}

// EndRun ends the run. Its children are removed, because their later changes would be missed.
func (s *ChildSource) EndRun() {
	c := s.children
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = slices.DeleteFunc(c.sources, func(other *ChildSource) bool { return other == s })
	for uid, known := range c.owners {
		for child, one := range known.children {
			if one.source == s {
				delete(known.children, child)
				delete(c.ownersByChild, child)
			}
		}
		c.removeEmptyOwner(uid, known)
	}
}
