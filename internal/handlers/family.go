package handlers

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Family is the group of verbs that a handler belongs to.
type Family int

// The families of handlers.
const (
	// Changing handlers are called for causes: create, update, delete, resume, field.
	Changing Family = iota
	// Watching handlers are called for every raw event.
	Watching
	// Background handlers run in the background: daemons and timers.
	Background
	// Indexing handlers fill indices.
	Indexing
	// Admitting handlers answer admission reviews.
	Admitting
	// Activity handlers belong to activities, which do not have an object: startup, cleanup, login, probe.
	Activity
	// Parent handlers make the operator watch a kind of children, for the handlers of their owners. They are never
	// called.
	Parent
	// Child handlers are called for events of the children that the handled objects own.
	Child
	// Condition handlers do not have a function: an object that matches one gets conditions about its other handlers.
	Condition
)

// WritesObjects reports whether the engine stores anything on the objects for handlers of the family.
func (h *Handler) WritesObjects() bool {
	return h.Family != Watching && h.Family != Parent && h.Family != Child
}

// IsForChildren reports whether the handler is called for the children that the given Owning handler watches.
func (h *Handler) IsForChildren(watched *Handler) bool {
	return h.Family == Child && watched.Family == Parent && h.ParentHandler == watched
}

// WatchesChildren reports whether the handler makes the operator watch a kind of children.
func (h *Handler) WatchesChildren() bool { return h.Family == Parent }

// NeedsAllObjects reports whether the handler needs the objects of all ranges, if the replicas of the operator share
// the objects: an index does, and so does a handler that watches children, because a child and its parent are seldom in
// the same range.
func (h *Handler) NeedsAllObjects() bool {
	return h.Family == Parent || h.Family == Indexing && !h.Index.ByRange
}

// EssenceField returns the handler's field, if the essence must include it for the handler; nil otherwise.
func (h *Handler) EssenceField() diff.Path {
	if h.Family == Changing || h.Family == Watching || h.Family == Background {
		return h.Field
	}
	return nil
}

// FollowsEvents reports whether the handler is called for events of objects of its kind. Admission handlers and
// activities are called on requests instead.
func (h *Handler) FollowsEvents() bool {
	switch h.Family {
	case Parent, Condition, Admitting, Activity:
		return false
	}
	return true
}

// watchedLabels returns the labels that an object needs to concern the handler; nil if any object does. Only handlers
// of events, indices and children can have such labels: the others must also see objects that do not match any more,
// for example to remove their records. It returns false for handlers that do not watch objects.
func (h *Handler) watchedLabels() (by labels.Selector, looks bool) {
	switch h.Family {
	case Admitting, Activity:
		return nil, false
	case Watching, Indexing, Parent:
		return h.Labels, true
	}
	return nil, true
}

// VerbName returns the verb of the handler's registration in one word, for logs and the journal.
func (h *Handler) VerbName() string {
	switch h.Family {
	case Watching:
		return "event"
	case Child:
		return "child"
	case Indexing:
		return "index"
	case Background:
		if h.Background != nil && h.Background.Daemon {
			return "daemon"
		}
		return "timer"
	}
	switch {
	case h.Root != "":
		return "sub-handler"
	case h.Initial:
		return "resume"
	case h.Reason == "":
		return "field"
	default:
		return string(h.Reason)
	}
}
