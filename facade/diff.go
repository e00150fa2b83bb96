package kopf

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Diff is all that has changed between two states of an object; it is nil if there is nothing. Kopf: Diff.
//
// A mapping that appears or disappears as a whole is one item at its topmost path, not one for each of its keys. So the
// diff of a creation is one addition without a path, with all of the object as New: there is no item of spec.nodes,
// though Touches finds it. Lists are compared as a whole.
//
// For a handler with a field, paths begin at the field. The order is always the same: in every mapping, what was added,
// then what was removed, then what was changed, each by its keys.
type Diff []diff.Item

// Touches tells whether the value at the path has changed, or anything inside of it: also as a part of a mapping that
// was added or removed as a whole. The path is as for OnField, from the field of the handler if it has one. Where only
// digests are remembered, a mapping that was added or removed touches all that could be in it.
//
// It panics, which fails the handler, for what is no path, such as "spec..nodes".
func (d Diff) Touches(path string) bool {
	field, err := codec.ParsePath(path)
	if err != nil {
		panic(fmt.Errorf("Diff.Touches: %w", err))
	}
	for _, item := range d {
		if item.Path.HasPrefix(field...) || field.HasPrefix(item.Path...) && touches(item, field[len(item.Path):]) {
			return true
		}
	}
	return false
}

// touches tells whether a difference of a whole is one of a part of it.
func touches(whole diff.Item, part diff.Path) bool {
	if whole.Old == nil && whole.New == nil {
		return true
	}
	before, _ := diff.Resolve(whole.Old, part)
	after, _ := diff.Resolve(whole.New, part)
	return diff.Compute(before, after) != nil
}
