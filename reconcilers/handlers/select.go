package handlers

import (
	"context"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// Prematch tells whether an object is of interest to the handler at all, be it changed or not.
func (h *Handler) Prematch(ctx context.Context, c *cause.Cause) (bool, error) {
	_, ok, err := h.Criteria(ctx, c)
	return ok, err
}

// Criteria is Prematch, and tells what the object does not meet: the filter at that place, or, if that is negative, the
// pattern of the field.
func (h *Handler) Criteria(ctx context.Context, c *cause.Cause) (filter int, ok bool, err error) {
	if h.Field != nil {
		if ok, err := h.Ask(
			"value pattern", func() (bool, error) { return h.fieldMatches(c), nil },
		); err != nil || !ok {
			return -1, false, err
		}
	}
	for i, filter := range h.Filters {
		if ok, err := h.Ask("filter", func() (bool, error) { return filter(ctx, c) }); err != nil || !ok {
			return i, false, err
		}
	}
	return 0, true, nil
}

// Ask turns a panic of a user's function into an error: one bad object must not end the process.
func (h *Handler) Ask(whom string, question func() (bool, error)) (ok bool, err error) {
	err = panics.Contain(func() (err error) { ok, err = question(); return err })
	if err != nil {
		return false, fmt.Errorf("%s of handler %q: %w", whom, h.ID, panics.Tame(err))
	}
	return ok, nil
}

// Fits tells whether a changing handler is for the cause, filters aside. Handlers of any reason fit those that only
// inform, too: whoever calls handlers asks [cause.Reason.Handled] first.
func (h *Handler) Fits(c *cause.Cause) bool {
	switch {
	case h.Family != Changing:
		return false
	case h.Reason != "" && h.Reason != c.Reason:
		return false
	case h.Initial && !c.Initial:
		return false
	case h.Initial && c.Deleting && !h.EvenIfDeleted:
		return false
	default:
		return true
	}
}

// Select gives the changing handlers for the cause, in the order of registration.
// The same function under the same id is taken once, at its first place.
func Select(ctx context.Context, all []*Handler, c *cause.Cause) ([]*Handler, error) {
	var selected []*Handler
	for _, h := range all {
		if !h.Fits(c) || h.isAmong(selected) {
			continue
		}
		ok, err := h.Match(ctx, c)
		if err != nil {
			return nil, err
		}
		if ok {
			selected = append(selected, h)
		}
	}
	return selected, nil
}

// Matching gives the handlers of another family that the object matches, in the order of registration. They know of no
// changes, and of no reasons. The same function under the same id is taken once, at its first place.
func Matching(ctx context.Context, all []*Handler, family Family, c *cause.Cause) ([]*Handler, error) {
	var matching []*Handler
	for _, h := range all {
		if h.Family != family || h.isAmong(matching) {
			continue
		}
		ok, err := h.Prematch(ctx, c)
		if err != nil {
			return nil, err
		}
		if ok {
			matching = append(matching, h)
		}
	}
	return matching, nil
}

// Twin is true for another registration of the same thing: such as of one function by two selections that have a
// resource in common.
func (h *Handler) Twin(other *Handler) bool {
	return h == other || h.ID == other.ID && h.Function != nil && h.Function == other.Function &&
		h.Family == other.Family && h.Reason == other.Reason &&
		h.Initial == other.Initial && h.NeedsChange == other.NeedsChange && h.Index == other.Index
}

// Repeats is true for the same function under the same id, for whatever reason it is registered.
func (h *Handler) Repeats(other *Handler) bool {
	return h.ID == other.ID && h.Function != nil && h.Function == other.Function
}

func (h *Handler) isAmong(selected []*Handler) bool { return slices.ContainsFunc(selected, h.Repeats) }

// Interest is what the handlers of one kind want of an object.
type Interest struct {
	// Changing is true if any changing handler matches, whatever the reason: otherwise the object is left alone.
	Changing bool
	// Finalizer is true if the object must be held on its deletion.
	Finalizer bool
}

// InterestIn asks the changing handlers whether they want the object.
func InterestIn(ctx context.Context, all []*Handler, c *cause.Cause) (Interest, error) {
	var found Interest
	for _, h := range all {
		holds := h.Reason == cause.Delete && !h.Optional
		if h.Family != Changing || (found.Changing && (!holds || found.Finalizer)) {
			continue
		}
		ok, err := h.Prematch(ctx, c)
		if err != nil {
			return Interest{}, err
		}
		found.Changing = found.Changing || ok
		found.Finalizer = found.Finalizer || (ok && holds)
	}
	return found, nil
}
