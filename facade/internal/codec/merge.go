package codec

import (
	"fmt"
	"maps"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Transform makes a transformation of the raw object out of a change of a T. Only what the change touches is different
// afterwards. A panic of the change is an error, and the raw object stays as it was, as with any error.
func (c *Codec[T]) Transform(change func(object T)) func(body map[string]any) error {
	return func(body map[string]any) error {
		return c.transform(body, func(object T) error { change(object); return nil })
	}
}

// TryTransform is Transform of a change that may fail.
func (c *Codec[T]) TryTransform(change func(object T) error) func(body map[string]any) error {
	return func(body map[string]any) error { return c.transform(body, change) }
}

func (c *Codec[T]) transform(body map[string]any, change func(object T) error) error {
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
	changed := mergeMapping(body, before, keepIdentity(before, after))
	clear(body)
	maps.Copy(body, changed)
	return nil
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

// merge applies to a raw value the change that leads from before to after. The latter two are what the raw value looks
// like through a Go type: they may lack fields, and have others that the encoding adds. Both cancel out, so merge
// touches nothing but what differs. It modifies none of the values; the result shares with them what it can.
func merge(raw, before, after any) any {
	if diff.Equal(before, after) {
		return raw
	}
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			return mergeMapping(raw, before, after)
		}
	case []any:
		items, isList := raw.([]any)
		if before, ok := before.([]any); ok && isList && len(items) == len(before) {
			return mergeList(items, before, after)
		}
	}
	return withoutNulls(after)
}

func mergeMapping(raw any, before, after map[string]any) map[string]any {
	held, _ := raw.(map[string]any)
	changed := maps.Clone(held)
	if changed == nil {
		changed = map[string]any{}
	}
	for key, fresh := range after {
		if former, ok := before[key]; ok && diff.Equal(former, fresh) {
			continue
		}
		if value := merge(held[key], before[key], fresh); value != nil {
			changed[key] = value
		} else {
			delete(changed, key)
		}
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(changed, key)
		}
	}
	return changed
}

// mergeList keeps the raw form of items that are still there, wherever they are now. It takes any other item for a
// change of the one that was in its place, unless that one is elsewhere now.
func mergeList(raw, before, after []any) []any {
	from := make([]int, len(after)) // the former place of each item; -1 for a new one
	used := make([]bool, len(before))
	for i, item := range after {
		from[i] = indexOf(item, before, used, i)
		if from[i] >= 0 {
			used[from[i]] = true
		}
	}
	items := make([]any, len(after))
	for i, item := range after {
		switch {
		case from[i] >= 0:
			items[i] = raw[from[i]]
		case i < len(before) && !used[i]:
			items[i] = merge(raw[i], before[i], item)
		default:
			items[i] = withoutNulls(item)
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

// indexOf finds the former place of an item, or gives -1. It looks at the item's own place first: equal items must not
// change places.
func indexOf(item any, before []any, used []bool, at int) int {
	if at < len(before) && !used[at] && diff.Equal(item, before[at]) {
		return at
	}
	for i, former := range before {
		if !used[i] && diff.Equal(item, former) {
			return i
		}
	}
	return -1
}
