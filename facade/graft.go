package facade

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// graft gives the raw value with the change made that leads from before to after. The latter two are what the raw value
// looks like through a Go type: they may lack fields, and have others that the encoding adds. Both cancel out, so that
// nothing is touched but what differs. None of the values is modified; the result shares with them what it can.
func graft(raw, before, after any) any {
	if diff.Equal(before, after) {
		return raw
	}
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			return graftMapping(raw, before, after)
		}
	case []any:
		items, isList := raw.([]any)
		if before, ok := before.([]any); ok && isList && len(items) == len(before) {
			return graftList(items, before, after)
		}
	}
	return solid(after)
}

func graftMapping(raw any, before, after map[string]any) map[string]any {
	held, _ := raw.(map[string]any)
	changed := maps.Clone(held)
	if changed == nil {
		changed = map[string]any{}
	}
	for key, fresh := range after {
		if former, ok := before[key]; ok && diff.Equal(former, fresh) {
			continue
		}
		if value := graft(held[key], before[key], fresh); value != nil {
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

// graftList keeps the raw form of items that are still there, wherever they are now; an item that is not, is taken for
// a change of the one that was in its place, unless that one is elsewhere now.
func graftList(raw, before, after []any) []any {
	from := make([]int, len(after)) // the former place of each item; -1 for a new one
	used := make([]bool, len(before))
	for i, item := range after {
		from[i] = placeOf(item, before, used, i)
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
			items[i] = graft(raw[i], before[i], item)
		default:
			items[i] = solid(item)
		}
	}
	return items
}

// solid leaves out fields that are null: they are how some types encode nothing, and few schemas allow them.
func solid(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, field := range value {
			if field != nil {
				kept[key] = solid(field)
			}
		}
		return kept
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = solid(item)
		}
		return items
	default:
		return value
	}
}

// placeOf looks for an item at its own place first: equal items must not change places.
func placeOf(item any, before []any, used []bool, at int) int {
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
