package handlers

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
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

// Metadata is a filter by one of the "labels" or "annotations" of the present object.
func Metadata(name, key string, matches Pattern) Filter {
	return func(_ context.Context, c *cause.Cause) (bool, error) {
		value, present := stringsAt(c.Body, name)[key]
		return matches(value, present), nil
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
