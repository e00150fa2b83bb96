package handlers

import (
	"context"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

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

// Match tells whether the object and its change are as the handler wants them, whatever the reason: it is of interest,
// and the field has changed from and to what it must.
func (h *Handler) Match(ctx context.Context, c *cause.Cause) (bool, error) {
	if h.Field != nil {
		if ok, err := h.Ask(
			"value pattern", func() (bool, error) { return h.fieldChanged(c), nil },
		); err != nil || !ok {
			return false, err
		}
	}
	return h.Prematch(ctx, c)
}

// fieldChanged compares strictly: a null and an absent value differ here, as they do in Kopf. Then the two sides must
// be as wanted.
func (h *Handler) fieldChanged(c *cause.Cause) bool {
	before, hadBefore := diff.Resolve(c.Old, h.Field)
	after, hasAfter := diff.Resolve(c.New, h.Field)
	if h.NeedsChange && hadBefore == hasAfter && diff.Equal(before, after) {
		return false
	}
	return (h.From == nil || h.From(before, hadBefore)) && (h.To == nil || h.To(after, hasAfter))
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
