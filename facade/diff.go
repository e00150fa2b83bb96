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
type Diff []DiffItem

// DiffItem is one difference: Op is what happened, Path is where, Old and New are the values before and after, in JSON.
// Old is nil for an addition, New for a removal, both where only digests are remembered, see [Selection.Redacted].
// String gives it for logs: `change spec.owner: "ann" -> "bob"`. Kopf: DiffItem.
type DiffItem = diff.Item

// DiffOperation is what happened to a value. A null is no value. Kopf: DiffOperation.
type DiffOperation = diff.Operation

// The operations.
const (
	// DiffAdd is for a value where there was none. Kopf: "add".
	DiffAdd = diff.Add
	// DiffChange is for a value in the place of another one. Kopf: "change".
	DiffChange = diff.Change
	// DiffRemove is for a value that is no more. Kopf: "remove".
	DiffRemove = diff.Remove
)

// Path is the keys that lead from an object, or from the field of the handler, to a value: Path{"spec", "nodes"}. Its
// method HasPrefix tells whether it leads to or into a place. Kopf: FieldPath.
type Path = diff.Path

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
func touches(whole DiffItem, part Path) bool {
	if whole.Old == nil && whole.New == nil {
		return true
	}
	before, _ := diff.Resolve(whole.Old, part)
	after, _ := diff.Resolve(whole.New, part)
	return diff.Compute(before, after) != nil
}
