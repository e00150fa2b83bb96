package patching

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"

	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// A Transform changes a raw body in place: one function of Kopf's patch.fns. The body is a private copy, so everything
// in it may be modified, but values put into it must be JSON ones.
//
// It must be idempotent: after a conflict it runs again on the fresh object, which may already have the change. An
// error ends the write; it reaches the caller wrapped.
type Transform func(body map[string]any) error

// A Patch is everything to be written to one object. The zero value is an empty patch, ready to use.
//
// The merge-patch holds for whatever state the object is in; a transformation is for changes that depend on the
// current state, such as items of lists. The transformations see the body with the merge-patch already applied.
type Patch struct {
	// Merge is a merge-patch (RFC 7386): mappings are merged, null removes, other values replace. The patch owns all
	// mappings in it: its methods write into them.
	Merge map[string]any
	// Transforms are called in this order.
	Transforms []Transform
}

// A TransformError is the error of a user's transformation that cannot be applied to the object.
type TransformError struct{ err error }

// Empty tells whether there is nothing to write at all. Transformations count even if they would change nothing.
func (p *Patch) Empty() bool {
	return len(p.Merge) == 0 && len(p.Transforms) == 0
}

// SetIn puts a value into the merge-patch at the path of keys, nil for a removal. Mappings on the way are made, also
// in place of other values. The value may be any that encodes to JSON, and is copied; one that does not encode is an
// error of Writer.Apply. An empty path does nothing.
func (p *Patch) SetIn(path []string, value any) {
	if len(path) == 0 {
		return
	}
	if tree, err := toJSON(value); err == nil {
		value = tree
	}
	if p.Merge == nil {
		p.Merge = map[string]any{}
	}
	at := p.Merge
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok || next == nil {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = diff.Copy(value)
}

// AddResult puts a handler's result to status.<id>, where the id is one key with its slashes and dots as they are. A
// mapping is merged shallowly over the mapping that the patch has there, any other value replaces it; null results are
// ignored, empty and zero ones are not.
//
// Any Go value that encodes to JSON will do; the error for one that does not names the id. A result removes those of
// the former ids.
func (p *Patch) AddResult(id string, value any, former ...string) error {
	result, err := toJSON(value)
	if err != nil {
		return fmt.Errorf("result of handler %q is not a JSON value: %w", id, err)
	}
	if result == nil {
		return nil
	}
	for _, old := range former {
		p.SetIn([]string{"status", old}, nil)
	}
	path := []string{"status", id}
	held, _ := diff.Resolve(p.Merge, path)
	into, ok := held.(map[string]any)
	fields, isMapping := result.(map[string]any)
	if !ok || into == nil || !isMapping {
		p.SetIn(path, result)
		return nil
	}
	for key, field := range fields {
		into[key] = diff.Copy(field)
	}
	return nil
}

// Clone returns a patch that can be added to without changing this one.
func (p *Patch) Clone() Patch {
	clone := Patch{}
	if p.Merge != nil {
		clone.Merge, _ = diff.Copy(p.Merge).(map[string]any)
	}
	clone.Transforms = append(clone.Transforms, p.Transforms...)
	return clone
}

// ApplyTo returns what the body becomes by the patch, if nobody else changes it meanwhile: the merge-patch first, then
// the transformations. The result shares with the body and the patch what is the same; none of them is modified.
func (p *Patch) ApplyTo(body map[string]any) (map[string]any, error) {
	merged := body
	if len(p.Merge) > 0 {
		merged = applyMerge(body, p.Merge)
	}
	return applyTransforms(merged, p.Transforms)
}

// applyTransforms leaves the body alone: users' functions may write anywhere, so they get a copy of all of it.
func applyTransforms(body map[string]any, transforms []Transform) (map[string]any, error) {
	if len(transforms) == 0 {
		return body, nil
	}
	working, _ := diff.Copy(body).(map[string]any)
	if working == nil {
		working = map[string]any{}
	}
	return transformInPlace(working, transforms)
}

// transformInPlace is for a body that is a copy already.
func transformInPlace(working map[string]any, transforms []Transform) (map[string]any, error) {
	for _, transform := range transforms {
		if err := transform(working); err != nil {
			return nil, fmt.Errorf("transforming the body: %w", err)
		}
	}
	// Go values of other types than JSON trees have would always differ from the server's answer.
	after, err := toJSON(working)
	if err != nil {
		return nil, fmt.Errorf("a transformation left a value that is not JSON: %w", err)
	}
	body, _ := after.(map[string]any)
	return body, nil
}

// toJSON returns the value itself if it is a JSON tree already, else what it encodes to.
func toJSON(value any) (any, error) {
	if isJSON(value) {
		return value, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// isJSON is false for nil mappings and lists, too, as they encode to null.
func isJSON(value any) bool {
	switch value := value.(type) {
	case nil, bool, int64, string:
		return true
	case float64:
		return !math.IsNaN(value) && !math.IsInf(value, 0)
	case []any:
		for _, item := range value {
			if !isJSON(item) {
				return false
			}
		}
		return value != nil
	case map[string]any:
		for _, field := range value {
			if !isJSON(field) {
				return false
			}
		}
		return value != nil
	default:
		return false
	}
}

// Error gives the text of the function's error.
func (e *TransformError) Error() string { return e.err.Error() }

// Unwrap gives the function's error.
func (e *TransformError) Unwrap() error { return e.err }

// Contained turns the errors and panics of users' transformations into TransformErrors, as the Writer calls them when
// no adapter of their handler is on the stack to recover.
func Contained(transforms []Transform) []Transform {
	out := make([]Transform, len(transforms))
	for i, transform := range transforms {
		out[i] = func(body map[string]any) error {
			if err := panics.Contain(func() error { return transform(body) }); err != nil {
				return &TransformError{err}
			}
			return nil
		}
	}
	return out
}

// touchesList tells whether the merge-patch adds, replaces or removes a list of the value.
func touchesList(value any, merge map[string]any) bool {
	held, isMapping := value.(map[string]any)
	if !isMapping && hasList(value) {
		return true
	}
	for key, change := range merge {
		if into, ok := change.(map[string]any); ok {
			if touchesList(held[key], into) {
				return true
			}
		} else if hasList(change) || hasList(held[key]) {
			return true
		}
	}
	return false
}

// hasList tells whether the value is, or has anywhere in it, a list.
func hasList(value any) bool {
	switch value := value.(type) {
	case []any:
		return true
	case map[string]any:
		for _, field := range value {
			if hasList(field) {
				return true
			}
		}
	}
	return false
}

// withMetadata adds fields to the metadata of a merge-patch, or returns it as it is if there are none to add.
func withMetadata(merge, fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return merge
	}
	metadata := map[string]any{}
	if held, ok := merge["metadata"].(map[string]any); ok {
		maps.Copy(metadata, held)
	}
	maps.Copy(metadata, fields)
	out := map[string]any{}
	maps.Copy(out, merge)
	out["metadata"] = metadata
	return out
}

// splitMerge takes the status out of a merge-patch. An absent status is not a null one: the latter is a removal.
func splitMerge(merge map[string]any) (status any, present bool, rest map[string]any) {
	status, present = merge["status"]
	if !present {
		return nil, false, merge
	}
	rest = maps.Clone(merge)
	delete(rest, "status")
	return status, true, rest
}
