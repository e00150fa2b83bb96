package patching

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"

	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// A Transform changes a raw body in place: one function of Kopf's patch.fns. The body is a private copy, so everything
// in it can be modified. Values that are put into it must be JSON values.
//
// A Transform must be idempotent: after a conflict, it runs again on the fresh object, which may already have the
// change. An error ends the write, and is returned to the caller, wrapped.
type Transform func(body map[string]any) error

// A Patch has all changes to one object. The zero value is an empty patch, ready to use.
//
// The merge-patch is valid for any state of the object. A transformation is for a change that depends on the current
// state, such as of the items of a list. Transformations get the body with the merge-patch already applied.
type Patch struct {
	// Merge is a merge-patch (RFC 7386): mappings are merged, nulls remove keys, other values replace. The patch owns
	// all mappings in it, and its methods modify them.
	Merge map[string]any
	// Transforms are called in this order.
	Transforms []Transform
}

// A TransformError is the error of a user's transformation that failed or panicked.
type TransformError struct{ err error }

// IsEmpty reports whether there is nothing to write. Transformations count even if they would not change anything.
func (p *Patch) IsEmpty() bool {
	return len(p.Merge) == 0 && len(p.Transforms) == 0
}

// SetIn sets the value at a path of the merge-patch; nil is a removal. It creates the mappings along the path, also in
// place of other values. The value can be of any type that encodes to JSON, and is copied. If it does not encode,
// [PatchWriter.Apply] returns the error. An empty path has no effect.
func (p *Patch) SetIn(path []string, value any) {
	if len(path) == 0 {
		return
	}
	// An error is not returned here: the value remains in the patch, and encoding the request fails.
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
	at[path[len(path)-1]] = diff.DeepCopy(value)
}

// AddResult stores a handler's result in status.<id>. The id is one key, including its slashes and dots. A mapping is
// merged, without recursion, into the mapping that the patch has there; any other value replaces it. A null result is
// ignored, but empty and zero ones are stored.
//
// The value can be of any Go type that encodes to JSON; otherwise AddResult returns an error with the id. It also
// removes the results of the former ids.
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
	held, _ := diff.ResolvePath(p.Merge, path)
	into, ok := held.(map[string]any)
	fields, isMapping := result.(map[string]any)
	if !ok || into == nil || !isMapping {
		p.SetIn(path, result)
		return nil
	}
	for key, field := range fields {
		into[key] = diff.DeepCopy(field)
	}
	return nil
}

// Clone returns a copy of the patch that can be extended without changing the original.
func (p *Patch) Clone() Patch {
	clone := Patch{}
	if p.Merge != nil {
		clone.Merge, _ = diff.DeepCopy(p.Merge).(map[string]any)
	}
	clone.Transforms = append(clone.Transforms, p.Transforms...)
	return clone
}

// ApplyTo returns the body after the patch, if there are no other changes: the merge-patch is applied first, and then
// the transformations. The result shares unchanged values with the body and the patch. Neither of them is modified.
func (p *Patch) ApplyTo(body map[string]any) (map[string]any, error) {
	merged := body
	if len(p.Merge) > 0 {
		merged = applyMerge(body, p.Merge)
	}
	return applyTransforms(merged, p.Transforms)
}

// applyMerge returns the result of the merge-patch for the value. It does not modify either of them.
func applyMerge(value any, merge map[string]any) map[string]any {
	held, _ := value.(map[string]any)
	out := make(map[string]any, len(held)+len(merge))
	maps.Copy(out, held)
	for key, change := range merge {
		switch change := change.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			out[key] = applyMerge(out[key], change)
		default:
			out[key] = change
		}
	}
	return out
}

// applyTransforms returns the body after the transformations. Users' functions can write anywhere, so they get a deep
// copy.
func applyTransforms(body map[string]any, transforms []Transform) (map[string]any, error) {
	if len(transforms) == 0 {
		return body, nil
	}
	working, _ := diff.DeepCopy(body).(map[string]any)
	if working == nil {
		working = map[string]any{}
	}
	return transformInPlace(working, transforms)
}

// transformInPlace applies the transformations to a body that is a copy already.
func transformInPlace(working map[string]any, transforms []Transform) (map[string]any, error) {
	for _, transform := range transforms {
		if err := transform(working); err != nil {
			return nil, fmt.Errorf("transforming the body: %w", err)
		}
	}
	// Go values of types that JSON does not have would always differ from the server's answer, so they are converted.
	after, err := toJSON(working)
	if err != nil {
		return nil, fmt.Errorf("a transformation left a value that is not JSON: %w", err)
	}
	body, _ := after.(map[string]any)
	return body, nil
}

// toJSON returns the value itself if it consists of JSON values only, and otherwise the decoded form of its JSON.
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

// isJSON reports whether a value consists of JSON values only. It is false for nil mappings and lists, because they
// encode to null.
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

// Error returns the text of the function's error.
func (e *TransformError) Error() string { return e.err.Error() }

// Unwrap returns the function's error.
func (e *TransformError) Unwrap() error { return e.err }

// ContainPanics returns the transformations with their errors and panics turned into a [TransformError]. They are
// called after the adapter of their handler, which would recover from a panic, has returned.
func ContainPanics(transforms []Transform) []Transform {
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

// touchesList reports whether the merge-patch adds, replaces or removes a list of the value.
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

// hasList reports whether the value is a list or contains one.
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

// splitMerge separates the status from the rest of a merge-patch. A null status is present, because it is a removal.
func splitMerge(merge map[string]any) (status any, present bool, rest map[string]any) {
	status, present = merge["status"]
	if !present {
		return nil, false, merge
	}
	rest = maps.Clone(merge)
	delete(rest, "status")
	return status, true, rest
}
