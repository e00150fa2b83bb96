package kopf

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Diff contains the differences between two states of an object, in a stable order. A mapping that is added or removed
// is one item, so a creation is one addition of the whole object. Lists are compared as a whole. Kopf: Diff.
type Diff []diff.Item

// Touches reports whether the value at the path, or a part of it, has changed. The path is relative to the field of the
// handler. An invalid path panics, which fails the handler.
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

// touches reports whether a difference of a whole value includes one of its part.
func touches(whole diff.Item, part diff.Path) bool {
	if whole.Old == nil && whole.New == nil {
		return true
	}
	before, _ := diff.Resolve(whole.Old, part)
	after, _ := diff.Resolve(whole.New, part)
	return diff.Compute(before, after) != nil
}
