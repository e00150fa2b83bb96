package codec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Transform makes a transformation of the raw object out of a change of a T. Only what the change touches is different
// afterwards. A panic of the change is an error, and the raw object stays as it was, as with any error.
func (c *Codec[T]) Transform(change func(object T), lists Lists) func(body map[string]any) error {
	return c.TryTransform(func(object T) error { change(object); return nil }, lists)
}

// TryTransform is Transform of a change that may fail.
func (c *Codec[T]) TryTransform(change func(object T) error, lists Lists) func(body map[string]any) error {
	return func(body map[string]any) error {
		object, err := c.Decode(body)
		if err != nil {
			return err
		}
		before, err := c.encode(object)
		if err != nil {
			return fmt.Errorf("encoding the object before the change: %w", err)
		}
		if err := Call(func() error { return change(object) }); err != nil {
			return err
		}
		after, err := c.encode(object)
		if err != nil {
			return fmt.Errorf("encoding the object after the change: %w", err)
		}
		c.apply(body, before, keepIdentity(before, after), lists)
		return nil
	}
}

// apply applies to a raw object, in place, the change that leads from before to after.
func (c *Codec[T]) apply(body, before, after map[string]any, lists Lists) {
	m := merger{typ: c.typ, lists: lists}
	changed := m.mapping(body, before, after)
	clear(body)
	maps.Copy(body, changed)
	if len(m.lost) > 0 && lists.Lost != nil {
		slices.Sort(m.lost)
		lists.Lost(m.lost)
	}
}

// serverFields are the fields of the metadata that belong to the API server.
var serverFields = []string{
	"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
}

// keepIdentity gives the changed object with the identity that it had before: it undoes what functions do to that.
func keepIdentity(before, after map[string]any) map[string]any {
	kept := maps.Clone(after)
	if kept == nil {
		kept = map[string]any{}
	}
	former, _ := before["metadata"].(map[string]any)
	given, _ := after["metadata"].(map[string]any)
	metadata := make(map[string]any, len(given))
	maps.Copy(metadata, given)
	restore(metadata, former, serverFields...)
	restore(kept, before, "apiVersion", "kind")
	kept["metadata"] = metadata
	return kept
}

func restore(to, from map[string]any, keys ...string) {
	for _, key := range keys {
		if value, ok := from[key]; ok {
			to[key] = value
		} else {
			delete(to, key)
		}
	}
}

// merger applies one change to one raw object.
type merger struct {
	typ   reflect.Type // of the object
	lists Lists
	path  diff.Path // of the value that is being merged, without the places in lists
	lost  []string  // fields of items that could not be identified
}

// value applies to a raw value the change that leads from before to after. The latter two are what the raw value looks
// like through a Go type: they may lack fields, and have others that the encoding adds. Both cancel out, so value
// touches nothing but what differs. It modifies none of the values; the result shares with them what it can.
func (m *merger) value(raw, before, after any) any {
	if diff.Equal(before, after) {
		return raw
	}
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			return m.mapping(raw, before, after)
		}
	case []any:
		items, isList := raw.([]any)
		if before, ok := before.([]any); ok && isList && len(items) == len(before) {
			return m.list(items, before, after)
		}
	}
	return withoutNulls(after)
}

func (m *merger) mapping(raw any, before, after map[string]any) map[string]any {
	held, _ := raw.(map[string]any)
	changed := maps.Clone(held)
	if changed == nil {
		changed = map[string]any{}
	}
	for key, fresh := range after {
		if former, ok := before[key]; ok && diff.Equal(former, fresh) {
			continue
		}
		m.path = append(m.path, key)
		if value := m.value(held[key], before[key], fresh); value != nil {
			changed[key] = value
		} else {
			delete(changed, key)
		}
		m.path = m.path[:len(m.path)-1]
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(changed, key)
		}
	}
	return changed
}

// list keeps the raw form of items that are still there, wherever they are now. A new item has nothing but what the
// change gives it.
func (m *merger) list(raw, before, after []any) []any {
	items := make([]any, len(after))
	for i, from := range m.origins(raw, before, after) {
		if from < 0 {
			items[i] = withoutNulls(after[i])
		} else {
			items[i] = m.value(raw[from], before[from], after[i])
		}
	}
	return items
}

// withoutNulls leaves out fields that are null: some types encode nothing so, and few schemas allow it.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, field := range value {
			if field != nil {
				kept[key] = withoutNulls(field)
			}
		}
		return kept
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = withoutNulls(item)
		}
		return items
	default:
		return value
	}
}
