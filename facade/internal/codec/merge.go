package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Transform converts a change of a T into a transformation of the raw object. The transformation alters only the parts
// that the change touches. A panic of the change becomes an error. After any error, the raw object is unchanged.
func (c *Codec[T]) Transform(change func(object T), lists Lists) func(body map[string]any) error {
	return c.TryTransform(func(object T) error { change(object); return nil }, lists)
}

// TryTransform is Transform for a change that can fail.
func (c *Codec[T]) TryTransform(change func(object T) error, lists Lists) func(body map[string]any) error {
	return func(body map[string]any) error {
		object, err := c.Decode(body)
		if err != nil {
			return err
		}
		// Both states are compared after the same encoding, so its additions and omissions cancel out.
		before, err := c.encodeRaw(object)
		if err != nil {
			return fmt.Errorf("encoding the object before the change: %w", err)
		}
		// The raw object has not been touched yet, so an error leaves it unchanged.
		if err := Call(func() error { return change(object) }); err != nil {
			return err
		}
		after, err := c.encodeRaw(object)
		if err != nil {
			return fmt.Errorf("encoding the object after the change: %w", err)
		}
		c.applyChange(body, before, keepIdentity(before, after), lists)
		return nil
	}
}

// applyChange applies the change from before to after to a raw object, in place.
func (c *Codec[T]) applyChange(body, before, after map[string]any, lists Lists) {
	m := merger{typ: c.typ, lists: lists}
	changed := m.mergeMap(body, before, after)
	// The caller holds the map itself, so its content is replaced.
	clear(body)
	maps.Copy(body, changed)
	if len(m.lostFields) > 0 && lists.OnLost != nil {
		slices.Sort(m.lostFields)
		lists.OnLost(m.lostFields)
	}
}

// serverFields are the metadata fields that belong to the API server.
var serverFields = []string{
	"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
}

// keepIdentity returns the changed object with its former identity: it reverts what functions do to server-owned
// metadata, apiVersion and kind.
func keepIdentity(before, after map[string]any) map[string]any {
	// The arguments are compared later, so they must not be modified.
	kept := maps.Clone(after)
	if kept == nil {
		kept = map[string]any{}
	}
	former, _ := before["metadata"].(map[string]any)
	given, _ := after["metadata"].(map[string]any)
	metadata := make(map[string]any, len(given))
	maps.Copy(metadata, given)
	restoreKeys(metadata, former, serverFields...)
	restoreKeys(kept, before, "apiVersion", "kind")
	kept["metadata"] = metadata
	return kept
}

// restoreKeys sets the keys to their former values, and removes those that were absent before.
func restoreKeys(to, from map[string]any, keys ...string) {
	for _, key := range keys {
		if value, ok := from[key]; ok {
			to[key] = value
		} else {
			delete(to, key)
		}
	}
}

// merger applies one change to one raw object.
//
// A change is known only in the form of the Go type, before and after. The merger walks through both and through the
// raw object at the same time. Only differences between before and after are applied. So fields that the Go type lacks
// survive, and defaults that its encoding adds are not written.
type merger struct {
	typ        reflect.Type // of the object
	lists      Lists
	path       diff.Path // the current position, without indices of lists
	lostFields []string  // hidden fields of items that could not be matched
}

// mergeValue applies the change from before to after to a raw value, and returns the result. Before and after are
// encodings of the Go type: they may lack fields of the raw value, and contain fields that only the encoding adds. Both
// cancel out, so only real differences are applied. The arguments are not modified; the result shares unchanged parts
// with them.
func (m *merger) mergeValue(raw, before, after any) any {
	// Most values are unchanged, and their raw form is kept as it is.
	if diff.Equal(before, after) {
		return raw
	}
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			return m.mergeMap(raw, before, after)
		}
	case []any:
		// The raw list must correspond to the encoded one, item by item. Otherwise it is replaced as a whole.
		items, isList := raw.([]any)
		if before, ok := before.([]any); ok && isList && len(items) == len(before) {
			return m.mergeList(items, before, after)
		}
	}
	return WithoutNulls(after)
}

// mergeMap merges the entries of a map. Raw fields that neither before nor after contains are kept.
func (m *merger) mergeMap(raw any, before, after map[string]any) map[string]any {
	held, _ := raw.(map[string]any)
	changed := maps.Clone(held)
	if changed == nil {
		changed = map[string]any{}
	}
	for key, fresh := range after {
		// An unchanged field keeps its raw form, even if the encoding differs from it.
		if former, ok := before[key]; ok && diff.Equal(former, fresh) {
			continue
		}
		m.path = append(m.path, key)
		// Null means that the change has removed the field.
		if value := m.mergeValue(held[key], before[key], fresh); value != nil {
			changed[key] = value
		} else {
			delete(changed, key)
		}
		m.path = m.path[:len(m.path)-1]
	}
	// A field that was in the encoding before and is absent now was removed by the change.
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(changed, key)
		}
	}
	return changed
}

// mergeList merges the items of a list. Matched items keep their raw form at their new position. A new item consists
// only of the fields that the change sets.
func (m *merger) mergeList(raw, before, after []any) []any {
	items := make([]any, len(after))
	for i, from := range m.formerIndices(raw, before, after) {
		if from < 0 {
			items[i] = WithoutNulls(after[i])
		} else {
			items[i] = m.mergeValue(raw[from], before[from], after[i])
		}
	}
	return items
}

// WithoutNulls returns a copy without null fields. Some types encode empty values as null, which few schemas allow.
func WithoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, field := range value {
			if field != nil {
				kept[key] = WithoutNulls(field)
			}
		}
		return kept
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			// A null item stays, because removing it would move the others.
			items[i] = WithoutNulls(item)
		}
		return items
	default:
		return value
	}
}

// JSONText returns the JSON text of an object as the starting point for [Codec.EditTransform]. For a large object, the
// text takes a small fraction of the memory of the raw form.
func (c *Codec[T]) JSONText(object T) (text []byte, err error) {
	// Encoders can be users' code and may panic.
	err = Call(func() error {
		text, err = json.Marshal(encodedForm(object))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	return text, nil
}

// EditTransform returns a transformation that applies the user's changes of a T to the raw object. former is the JSON
// text of the T before the changes, and object is the T after them. It returns nil if nothing has changed. The identity
// is always preserved, as in Transform, so its changes do not count.
func (c *Codec[T]) EditTransform(
	former []byte, object T, lists Lists,
) (func(body map[string]any) error, error) {
	text, err := c.JSONText(object)
	// Encoding is deterministic, so equal texts mean that nothing has changed. This is the common case, and it parses
	// nothing.
	if err != nil || bytes.Equal(former, text) {
		return nil, err
	}
	before, err := jsontext.DecodeObject(former)
	if err != nil {
		return nil, err
	}
	after, err := jsontext.DecodeObject(text)
	if err != nil {
		return nil, err
	}
	// Changes of the identity are reverted, so they do not count as changes.
	after = keepIdentity(before, after)
	if diff.Equal(before, after) {
		return nil, nil
	}
	return func(body map[string]any) error {
		c.applyChange(body, before, after, lists)
		return nil
	}, nil
}
