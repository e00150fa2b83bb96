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
	// Spawning handlers run in the background: daemons and timers.
	Spawning
	// Indexing handlers fill indices.
	Indexing
	// Admitting handlers answer admission reviews.
	Admitting
	// Acting handlers are those of activities, which have no objects: startup, cleanup, login, probe.
	Acting
	// Owning handlers have a kind watched for those that own its objects. They are never called.
	Owning
	// Tending handlers are called for what happens to the objects that the handled ones own.
	Tending
	// Reporting handlers have no function: objects that they match tell of the other handlers in their status.
	Reporting
)

// Writes tells whether something is remembered on the objects for handlers of the family.
func (h *Handler) Writes() bool {
	return h.Family != Watching && h.Family != Owning && h.Family != Tending
}

// IsForChildren reports whether the handler is for the children that the other one, an owning handler, has watched.
func (h *Handler) IsForChildren(watched *Handler) bool {
	return h.Family == Tending && watched.Family == Owning && h.Owned == watched
}

// EssenceField is the field that is a part of the essence because the handler looks at it; nil if there is none.
func (h *Handler) EssenceField() diff.Path {
	if h.Family == Changing || h.Family == Watching || h.Family == Spawning {
		return h.Field
	}
	return nil
}

// Follows tells whether the handler is called for what happens to objects of its kind: not those that are only asked,
// those of requests for admission, and those of activities.
func (h *Handler) Follows() bool {
	switch h.Family {
	case Owning, Reporting, Admitting, Acting:
		return false
	}
	return true
}

// Watched returns the labels that an object needs to concern the handler; nil without such labels. Only handlers of
// events, indices and children have them: others handle objects that do not match any more, such as to remove their
// records. It returns false for handlers that do not watch objects.
func (h *Handler) Watched() (by labels.Selector, looks bool) {
	switch h.Family {
	case Admitting, Acting:
		return nil, false
	case Watching, Indexing, Owning:
		return h.Labels, true
	}
	return nil, true
}

// On is what the handler is called for, in a word of its registration.
func (h *Handler) On() string {
	switch h.Family {
	case Watching:
		return "event"
	case Tending:
		return "child"
	case Indexing:
		return "index"
	case Spawning:
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
