package handlers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// MatchesObject reports whether the handler matches the object, whether or not the object has changed. If it does not
// match, filter is the index of the filter that returned false; -1 means the pattern of the field.
func (h *Handler) MatchesObject(ctx context.Context, c *cause.Cause) (filter int, ok bool, err error) {
	if h.Field != nil {
		if ok, err := h.CallCriterion(
			"value pattern", func() (bool, error) { return h.fieldMatches(c), nil },
		); err != nil || !ok {
			return -1, false, err
		}
	}
	for i, filter := range h.Filters {
		if ok, err := h.CallCriterion("filter", func() (bool, error) { return filter(ctx, c) }); err != nil || !ok {
			return i, false, err
		}
	}
	return 0, true, nil
}

// CallCriterion calls a function of the user and turns its panic into an error: one bad object must not end the
// process. Whom names the function in the error.
func (h *Handler) CallCriterion(whom string, question func() (bool, error)) (ok bool, err error) {
	err = panics.Contain(func() (err error) { ok, err = question(); return err })
	if err != nil {
		return false, fmt.Errorf("%s of handler %q: %w", whom, h.ID, err)
	}
	return ok, nil
}

// fieldMatches reports whether the field matches the value pattern. Without a pattern, the field must be present. For
// an update, the value before the change can match instead (deviation D-present-state).
func (h *Handler) fieldMatches(c *cause.Cause) bool {
	return h.fieldIn(h.PresentState(c)) || h.seesUpdate(c) && h.fieldIn(c.Old)
}

// seesUpdate reports whether the handler can be called for updates, and the cause has a former state.
func (h *Handler) seesUpdate(c *cause.Cause) bool {
	if h.Family != Changing || c.Old == nil || h.Initial || h.Reason != "" && h.Reason != cause.Update {
		return false
	}
	return c.Reason != cause.Create && c.Reason != cause.Delete && c.Reason != cause.Resume
}

// fieldIn reports whether the field matches the pattern in the given state.
func (h *Handler) fieldIn(of map[string]any) bool {
	wanted := h.Value
	if wanted == nil {
		wanted = IsPresent
	}
	return wanted(diff.ResolvePath(of, h.Field))
}

// PresentState returns the state in which the handler looks up its field: the essence for changing handlers, and the
// body for other families, whose causes do not have an essence.
func (h *Handler) PresentState(c *cause.Cause) map[string]any {
	if h.Family == Changing {
		return c.New
	}
	return c.Body()
}

// CriteriaSight returns the widest part of the object that the criteria of the handler depend on.
func (h *Handler) CriteriaSight() Sight {
	if len(h.FilterDescriptions.Filters) < len(h.Filters) {
		return SeesChange // a filter without words can depend on anything
	}
	sees := h.FilterDescriptions.widestSight()
	if h.Field != nil {
		sees = min(sees, sightOf(h.Field))
	}
	return sees
}

// ValuePattern reports whether a value matches. An absent value is passed as nil, false; a null as nil, true.
type ValuePattern func(value any, present bool) bool

// IsPresent matches any value, nulls included. Kopf: PRESENT.
func IsPresent(_ any, present bool) bool { return present }

// IsAbsent matches if the value is absent. Kopf: ABSENT.
func IsAbsent(_ any, present bool) bool { return !present }

// EqualTo returns a pattern that matches one JSON value. An absent value never matches.
func EqualTo(wanted any) ValuePattern {
	return func(value any, present bool) bool { return present && diff.Equal(value, wanted) }
}

// Filter reports whether an object with its cause matches. An error is treated as one of the framework: the object is
// retried, and its handlers wait. For families other than Changing, the cause only has the body.
type Filter func(ctx context.Context, c *cause.Cause) (bool, error)

// MatchLabels returns a filter that matches the labels of the present object against a selector.
func MatchLabels(selector labels.Selector) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		return selector.Matches(stringsAt(c, "labels")), nil
	}
}

// MatchAnnotations returns a filter that matches the annotations of the present object against a selector.
func MatchAnnotations(selector labels.Selector) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		return selector.Matches(stringsAt(c, "annotations")), nil
	}
}

// MatchMetadata returns a filter that matches one key of the "labels" or "annotations" of the present object.
func MatchMetadata(name, key string, matches ValuePattern) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		value, present := stringsAt(c, name)[key]
		return matches(value, present), nil
	}
}

// stringsAt reads the mapping without decoding the rest of the object: filters run for every event of every object.
func stringsAt(c *cause.Cause, name string) mapping { return c.Object.MappingAt("metadata", name) }

// mapping implements labels.Labels on the decoded map without a copy. Values that are not strings count as absent.
type mapping map[string]any

func (m mapping) Has(key string) bool { _, ok := m[key].(string); return ok }

func (m mapping) Get(key string) string { value, _ := m[key].(string); return value }

func (m mapping) Lookup(key string) (string, bool) { value, ok := m[key].(string); return value, ok }
