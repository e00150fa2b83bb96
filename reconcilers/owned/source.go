package owned

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// The types of what happened to a child. One that was there when the operator began to look has the empty one.
const (
	Listed   = ""
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Vanished = source.Vanished // deleted; the object is an earlier state of the child
)

// Source is the informer of one kind of children, in one namespace or in all, as long as its controller runs.
type Source struct {
	children *Children
	kinds    []*handlers.Handler
	kind     schema.GroupVersionKind // of the last object: all are of one, whose text they share
	lookup   Lookup
}

// Lookup returns an object as the informer has it, whether it is a child or not; nil if there is none. Any goroutine
// may call it.
type Lookup func(kind schema.GroupKind, key types.NamespacedName) *compact.Object

// Watch begins a run of the controller of children. The lookup is nil if handlers may wait for children only.
func (c *Children) Watch(owning []*handlers.Handler, lookup Lookup) *Source {
	s := &Source{children: c, lookup: lookup}
	for _, h := range owning {
		s.kinds = append(s.kinds, h.Owned)
	}
	if lookup != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sources = append(c.sources, s)
	}
	return s
}

func (s *Source) has(kind *handlers.Handler) bool { return slices.Contains(s.kinds, kind) }

// Seen is told of every event of a child, and has its owners looked at. They do not hear of one that cannot be decoded.
func (s *Source) Seen(eventType string, object *compact.Object) error {
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
	if kind := decoded.GroupVersionKind(); kind != s.kind {
		s.kind = kind
	}
	before, now, claims := c.of[uid], []types.UID(nil), c.claimsOf(decoded)
	isClaimed := make(map[types.UID]bool, len(claims))
	for _, one := range claims {
		isClaimed[one.uid] = true
	}
	if eventType == Deleted {
		c.Author.Gone(uid)
	} else {
		for _, one := range claims {
			now = append(now, one.uid)
			if c.note(s, one, state{object, decoded, false}, eventType == Listed) {
				routes = append(routes, c.way(one.uid, decoded))
			}
		}
		routes = append(routes, c.waitsFor(s, object)...)
	}
	for _, owner := range before {
		if isClaimed[owner] && eventType != Deleted {
			continue
		}
		if c.lose(s, owner, state{object, decoded, isUnseen}, isClaimed[owner]) {
			routes = append(routes, c.way(owner, nil))
		}
	}
	if len(now) == 0 {
		delete(c.of, uid)
	} else {
		c.of[uid] = now
	}
	c.mu.Unlock()
	for _, enqueue := range routes { // apart, as it looks into caches
		enqueue()
	}
	return nil
}

// state is a child as it is seen: it is decoded for those who look at it now, and kept as it is.
type state struct {
	object  *compact.Object
	decoded *unstructured.Unstructured
	missed  bool // what followed is not known, except that the child is gone
}

// way returns how a pass over the owner is requested: if it is undecided whether the child is one, that is found out
// first. Without a child, the pass is for one that was there.
func (c *Children) way(of types.UID, seen *unstructured.Unstructured) func() {
	known := c.owners[of]
	route, key, undecided := known.route, known.key, false
	if seen != nil {
		_, undecided = known.owns(known.children[seen.GetUID()])
	}
	return func() {
		if !undecided || c.isDeclared(route, key, of, seen) {
			route.enqueue(key)
		}
	}
}

// note takes up how the child is now, and returns true if a pass over the owner may be due.
func (c *Children) note(s *Source, claimed claim, seen state, listed bool) bool {
	uid := claimed.uid
	known := c.owner(uid)
	one := known.children[seen.object.GetUID()]
	if one == nil {
		one = &child{listed: listed}
		known.children[seen.object.GetUID()] = one
	}
	one.claim, one.source, one.kind, one.object, one.gone = claimed, s, s.kind, seen.object, false
	drifted := c.Author.Drifted(uid, seen.decoded, false, false)
	owns, undecided := known.owns(one)
	return known.route != nil && (drifted || (owns || undecided) && (known.route.tends(s) || c.awaits(uid, one)))
}

// lose records that the object is not a child of the owner any more, and reports whether the owner needs a pass. It is
// for the owners in Children.of: as long as one is there, it is known, and so is this child of it. The last state of
// the child is the last one in which it was a child: for other objects, the informer may keep nothing but the identity.
func (c *Children) lose(s *Source, uid types.UID, seen state, wasChild bool) bool {
	known := c.owners[uid]
	one := known.children[seen.object.GetUID()]
	if one.gone = true; wasChild {
		one.object = seen.object
	}
	maps.DeleteFunc(one.told, func(_ string, t *told) bool { return t.version == "" && !t.calling })
	drifted := c.Author.Drifted(uid, seen.decoded, true, seen.missed)
	owned, _ := known.owns(one)
	awaited := owned && c.awaits(uid, one) // the operator may remember how it has ended
	if len(one.told) == 0 {                // no handler was called for it
		delete(known.children, seen.object.GetUID())
		c.tidy(uid, known)
	} else {
		owned = true
	}
	return known.route != nil && (drifted || awaited || owned && known.route.tends(s))
}

// End ends the run: what is there is not known any more.
func (s *Source) End() {
	c := s.children
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = slices.DeleteFunc(c.sources, func(other *Source) bool { return other == s })
	for uid, known := range c.owners {
		for child, one := range known.children {
			if one.source == s {
				delete(known.children, child)
				delete(c.of, child)
			}
		}
		c.tidy(uid, known)
	}
}
