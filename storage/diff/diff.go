package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// An Operation is what happened to a value: [Add], [Change] or [Remove].
type Operation string

// The operations, spelled as Kopf spells them in the diffs that its handlers get.
const (
	// Add is for a value that was null or absent, and is neither now.
	Add Operation = "add"
	// Change is for a value that was replaced by another one, maybe of another type.
	Change Operation = "change"
	// Remove is for a value that was neither null nor absent, and is one of these now.
	Remove Operation = "remove"
)

// An Item is one difference, Kopf's DiffItem: what happened, where, and the values on both sides.
//
// A subtree that appears or disappears is one item at its topmost path, not one per leaf. Old is nil for [Add], New is
// nil for [Remove]. Both are nil for values that are not to be shown. The values belong to what was compared: read
// them, never write to them.
type Item struct {
	Op   Operation
	Path Path
	Old  any
	New  any
}

// String renders the item for logs, with the values in JSON: `change spec.owner: "ann" -> "bob"`. The path of the
// root is empty. An item whose values are withheld has none. The form is for people; it may change.
func (i Item) String() string {
	head := string(i.Op)
	if len(i.Path) > 0 {
		head += " " + i.Path.String()
	}
	if i.Old == nil && i.New == nil {
		return head
	}
	switch i.Op {
	case Add:
		return head + ": " + text(i.New)
	case Remove:
		return head + ": " + text(i.Old)
	default:
		return head + ": " + text(i.Old) + " -> " + text(i.New)
	}
}

// A Diff is all differences between two values, Kopf's Diff. It is nil if there are none.
//
// The order is deterministic: in every mapping the added keys go first, then the removed ones, then those that both
// sides have, each group sorted. (Kopf's order is arbitrary.)
type Diff []Item

// text is a value as compact JSON; what JSON cannot express (it should not be here) is printed as Go does.
func text(value any) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	// Logs are not HTML: "<" must stay readable.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return string(bytes.TrimSuffix(buffer.Bytes(), []byte("\n")))
}
