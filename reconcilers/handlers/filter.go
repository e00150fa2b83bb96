package handlers

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Filter says whether an object with its cause is of interest. An error is one of the framework: the object waits.
// For handlers other than the changing ones, the cause has the body alone.
type Filter func(ctx context.Context, c *cause.Cause) (bool, error)

// Labels is a filter by a selector over the labels of the present object.
func Labels(selector labels.Selector) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		return selector.Matches(stringsAt(c.Body, "labels")), nil
	}
}

// Annotations is the same over the annotations.
func Annotations(selector labels.Selector) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		return selector.Matches(stringsAt(c.Body, "annotations")), nil
	}
}

func stringsAt(body map[string]any, name string) mapping {
	metadata, _ := body["metadata"].(map[string]any)
	values, _ := metadata[name].(map[string]any)
	return values
}

// mapping reads labels where they are, with no copy: filters run for every event of every object.
type mapping map[string]any

func (m mapping) Has(key string) bool { _, ok := m[key].(string); return ok }

func (m mapping) Get(key string) string { value, _ := m[key].(string); return value }

func (m mapping) Lookup(key string) (string, bool) { value, ok := m[key].(string); return value, ok }

// fieldPresent is the criterion of a handler with a field and no further words about its value:
// the field exists before or after; for other families, in the body.
func (h *Handler) fieldPresent(c *cause.Cause) bool {
	if h.Field == nil {
		return true
	}
	if h.Family != Changing {
		_, ok := diff.Resolve(c.Body, h.Field)
		return ok
	}
	_, after := diff.Resolve(c.New, h.Field)
	_, before := diff.Resolve(c.Old, h.Field)
	return after || before
}

// fieldChanged compares strictly: a null and an absent value differ here, as they do in Kopf.
func (h *Handler) fieldChanged(c *cause.Cause) bool {
	if h.Field == nil || !h.NeedsChange {
		return true
	}
	before, hadBefore := diff.Resolve(c.Old, h.Field)
	after, hasAfter := diff.Resolve(c.New, h.Field)
	return hadBefore != hasAfter || !diff.Equal(before, after)
}
