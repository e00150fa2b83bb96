package owned

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// The types of what happened to a child. One that was there when the operator began to look has the empty one.
const (
	Listed   = ""
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
)

// Source is the informer of one kind of children, in one namespace or in all, as long as its controller runs.
type Source struct {
	children *Children
	kinds    []*handlers.Handler
}

// Watch begins a run of the controller of children.
func (c *Children) Watch(owning []*handlers.Handler) *Source {
	s := &Source{children: c}
	for _, h := range owning {
		s.kinds = append(s.kinds, h.Owned)
	}
	return s
}

func (s *Source) has(kind *handlers.Handler) bool { return slices.Contains(s.kinds, kind) }

// Seen is told of every event of a child, and has its owners looked at. The object is shared.
func (s *Source) Seen(eventType string, object *unstructured.Unstructured) {
	c := s.children
	c.mu.Lock()
	var routes []func()
	uid := object.GetUID()
	before, now := c.of[uid], c.ownersOf(object)
	if eventType == Deleted {
		now = nil
		c.Author.Gone(uid)
	}
	for _, owner := range now {
		if c.note(s, owner, object, eventType == Listed) {
			routes = append(routes, c.way(owner))
		}
	}
	for _, owner := range before {
		if !slices.Contains(now, owner) && c.lose(s, owner, object) {
			routes = append(routes, c.way(owner))
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
}

// way is how a pass over the owner is asked for.
func (c *Children) way(of types.UID) func() {
	known := c.owners[of]
	route, key := known.route, known.key
	return func() { route.enqueue(key) }
}

// note takes up how the child is now, and tells whether the owner is to be looked at.
func (c *Children) note(s *Source, uid types.UID, object *unstructured.Unstructured, listed bool) bool {
	known := c.owner(uid)
	one := known.children[object.GetUID()]
	if one == nil {
		one = &child{listed: listed}
		known.children[object.GetUID()] = one
	}
	one.source, one.object, one.gone = s, object, false
	drifted := c.Repairer.Drifted(uid, object, false)
	return known.route != nil && (drifted || known.route.tends(s) || c.awaits(uid, object))
}

// lose notes that the object is no child of the owner any more, and tells whether the owner is to be looked at. It
// is for the owners in Children.of: as long as one is there, it is known, and so is this child of it.
func (c *Children) lose(s *Source, uid types.UID, object *unstructured.Unstructured) bool {
	known := c.owners[uid]
	one := known.children[object.GetUID()]
	one.object, one.gone = object, true
	maps.DeleteFunc(one.told, func(_ string, t *told) bool { return t.version == "" })
	drifted := c.Repairer.Drifted(uid, object, true)
	if len(one.told) == 0 { // nobody has ever heard of it
		delete(known.children, object.GetUID())
		c.tidy(uid, known)
	}
	return known.route != nil && (drifted || known.route.tends(s))
}

// End ends the run: what is there is not known any more.
func (s *Source) End() {
	c := s.children
	c.mu.Lock()
	defer c.mu.Unlock()
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
