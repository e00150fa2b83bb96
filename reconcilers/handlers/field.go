package handlers

import (
	"context"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// fieldMatches is the criterion of a handler with a field: its value, before or after the change, matches the pattern;
// with no pattern, there is one at all. For families that know of no changes, it is that of the body.
func (h *Handler) fieldMatches(c *cause.Cause) bool {
	wanted := h.Value
	if wanted == nil {
		wanted = Present
	}
	candidates := []any{c.Body}
	if h.Family == Changing {
		candidates = []any{c.New, c.Old}
	}
	return slices.ContainsFunc(candidates, func(of any) bool { return wanted(diff.Resolve(of, h.Field)) })
}

// Present is where a handler looks for its field now: in the essence, or, for families that know of no changes, in the
// body.
func (h *Handler) Present(c *cause.Cause) map[string]any {
	if h.Family == Changing {
		return c.New
	}
	return c.Body
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
