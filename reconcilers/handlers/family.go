package handlers

import (
	"slices"

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
)

// Writes tells whether something is remembered on the objects for handlers of the family.
func (h *Handler) Writes() bool { return h.Family != Watching }

// EssenceField is the field that is a part of the essence because the handler looks at it; nil if there is none.
func (h *Handler) EssenceField() diff.Path {
	if h.Family == Changing || h.Family == Watching || h.Family == Spawning {
		return h.Field
	}
	return nil
}

// Review is what is asked of the admitting handlers, apart from the object.
type Review struct {
	// ID is the handler that the request was sent to; nil is any.
	ID *string
	// Type is of the configuration that sent the request: "validating" or "mutating"; empty is any.
	Type string
	// Operation is CREATE, UPDATE, DELETE or CONNECT; one that is not known is none of those that a handler is for.
	Operation string
	// Subresource is empty for the object as a whole.
	Subresource string
}

// Covers tells whether an admitting handler is for the subresource at all.
func (h *Handler) Covers(r Review) bool {
	return h.Subresource == "*" || h.Subresource == r.Subresource
}

// Answers tells whether the handler is for the request, the object aside.
func (h *Handler) Answers(r Review) bool {
	typed := r.Type == "" || (r.Type == "mutating") == h.Mutating
	return typed && h.operates(r.Operation) && h.Covers(r) && (r.ID == nil || *r.ID == h.ID)
}

func (h *Handler) operates(operation string) bool {
	if h.Mutating && operation == "DELETE" {
		return len(h.Operations) > 0 &&
			!slices.ContainsFunc(h.Operations, func(o string) bool { return o != operation })
	}
	return len(h.Operations) == 0 || slices.Contains(h.Operations, operation)
}
