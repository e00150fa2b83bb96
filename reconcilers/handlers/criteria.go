package handlers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Prematch tells whether an object is of interest to the handler at all, be it changed or not; and if not, which of its
// criteria is not met: the filter at that place, or, if that is negative, the pattern of the field.
func (h *Handler) Prematch(ctx context.Context, c *cause.Cause) (filter int, ok bool, err error) {
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
		return false, fmt.Errorf("%s of handler %q: %w", whom, h.ID, err)
	}
	return ok, nil
}

// fieldMatches is the criterion of a handler with a field: its value matches the pattern; with no pattern, there is one
// at all. Where an update is handled, the value before the change may match instead (deviation D-present-state).
func (h *Handler) fieldMatches(c *cause.Cause) bool {
	return h.fieldIn(h.Present(c)) || h.seesUpdate(c) && h.fieldIn(c.Old)
}

// seesUpdate tells whether the handler is one of updates, and there is a state before the update.
func (h *Handler) seesUpdate(c *cause.Cause) bool {
	if h.Family != Changing || c.Old == nil || h.Initial || h.Reason != "" && h.Reason != cause.Update {
		return false
	}
	return c.Reason != cause.Create && c.Reason != cause.Delete && c.Reason != cause.Resume
}

func (h *Handler) fieldIn(of map[string]any) bool {
	wanted := h.Value
	if wanted == nil {
		wanted = Present
	}
	return wanted(diff.Resolve(of, h.Field))
}

// Present is where a handler looks for its field now: in the essence, or, for families that know of no changes, in the
// body.
func (h *Handler) Present(c *cause.Cause) map[string]any {
	if h.Family == Changing {
		return c.New
	}
	return c.Body()
}

// Sight is what the criteria of the handler look at.
func (h *Handler) Sight() requirements.Sight {
	if len(h.Words.Filters) < len(h.Filters) {
		return requirements.SeesChange // nothing is known of a filter
	}
	sees := h.Words.Sight()
	if h.Field != nil {
		sees = min(sees, requirements.SightOf(h.Field))
	}
	return sees
}

// Pattern says what a value must be like. An absent value is nil and not present; a null is present.
type Pattern func(value any, present bool) bool

// Present is the pattern of any value, nulls included. Kopf: PRESENT.
func Present(_ any, present bool) bool { return present }

// Absent is the pattern of no value at all. Kopf: ABSENT.
func Absent(_ any, present bool) bool { return !present }

// Equals is the pattern of one JSON value: an absent one equals nothing.
func Equals(wanted any) Pattern {
	return func(value any, present bool) bool { return present && diff.Equal(value, wanted) }
}

// Filter says whether an object with its cause is of interest. An error is one of the framework: the object waits.
// For handlers other than the changing ones, the cause has the body alone.
type Filter func(ctx context.Context, c *cause.Cause) (bool, error)

// Labels is a filter by a selector over the labels of the present object.
func Labels(selector labels.Selector) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		return selector.Matches(stringsAt(c, "labels")), nil
	}
}

// Annotations is the same over the annotations.
func Annotations(selector labels.Selector) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		return selector.Matches(stringsAt(c, "annotations")), nil
	}
}

// Metadata is a filter by one of the "labels" or "annotations" of the present object.
func Metadata(name, key string, matches Pattern) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		value, present := stringsAt(c, name)[key]
		return matches(value, present), nil
	}
}

// stringsAt decodes nothing else: filters run for every event of every object.
func stringsAt(c *cause.Cause, name string) mapping { return c.Object.Mapping("metadata", name) }

// mapping reads labels where they are, with no copy.
type mapping map[string]any

func (m mapping) Has(key string) bool { _, ok := m[key].(string); return ok }

func (m mapping) Get(key string) string { value, _ := m[key].(string); return value }

func (m mapping) Lookup(key string) (string, bool) { value, ok := m[key].(string); return value, ok }
