package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An Operation is the kind of a difference: [Add], [Change] or [Remove].
type Operation string

// The operations, with the names that they have in Kopf's diffs.
const (
	// Add means that the old value is null or absent, and the new one is neither.
	Add Operation = "add"
	// Change means that a value was replaced by another one, possibly of another type.
	Change Operation = "change"
	// Remove means that the old value is neither null nor absent, and the new one is.
	Remove Operation = "remove"
)

// An Item is one difference: the operation, the path, and the old and new values. Kopf: DiffItem.
//
// A subtree that appears or disappears is one item at its topmost path, not one item per leaf. Old is nil for [Add],
// and New is nil for [Remove]. Both are nil if the values are withheld. The values are shared with the compared ones,
// so they must not be modified.
type Item struct {
	Op   Operation
	Path Path
	Old  any
	New  any
}

// String returns the item for logs, with its values in JSON: `change spec.owner: "ann" -> "bob"`. The path of the root
// is empty. An item with withheld values has only the operation and the path. The format can change.
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
		return head + ": " + jsonText(i.New)
	case Remove:
		return head + ": " + jsonText(i.Old)
	default:
		return head + ": " + jsonText(i.Old) + " -> " + jsonText(i.New)
	}
}

// A Diff is the list of all differences between two values. It is nil if they do not differ. Kopf: Diff.
//
// The order is deterministic, unlike in Kopf: in every mapping, the added keys come first, then the removed ones, then
// the keys that both sides have. Each group is sorted.
type Diff []Item

// Clone returns a deep copy of the diff, which shares nothing with the compared values either.
func (d Diff) Clone() Diff {
	cloned := slices.Clone(d)
	for i, item := range d {
		cloned[i] = Item{Op: item.Op, Path: slices.Clone(item.Path), Old: DeepCopy(item.Old), New: DeepCopy(item.New)}
	}
	return cloned
}

// jsonText returns a value as compact JSON. Values that JSON cannot express should not occur; they are printed in Go's
// format.
func jsonText(value any) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	// By default, the encoder escapes "<", which makes logs hard to read.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return string(bytes.TrimSuffix(buffer.Bytes(), []byte("\n")))
}

// Compute returns all differences between an old and a new value, nil if there are none. Its rules are Kopf's:
//
//   - Null and absence are the same, so {"x": null} does not differ from {}. [Equal] is stricter.
//   - Mappings are compared key by key. All other values, including lists, are compared as a whole by [Equal]. Inside
//     of lists, null and absence differ.
//   - An empty mapping or list is a value: changing it to null is a [Remove], and changing null to it is an [Add].
//
// Below [MaxDepth] keys, mappings are compared as a whole, too: an item at that depth has all differences of its
// mapping. This limit decreases, to not less than eight keys, if the values have so many keys that the paths to all of
// them would take more than 16 MiB.
//
// Kopf follows Python, in which true equals 1. Here, JSON types count (deviation D-types): see [Equal]. Comparing
// values without differences does not allocate.
func Compute(before, after any) Diff {
	return computeInScope(before, after, fullScope)
}

// ComputeLeft is [Compute] without the keys that only the new mapping has, at any depth. Kopf: the diff of the left
// scope. It reports whether all values of the old side have been applied to the new one, regardless of other values
// there. A key with a null on the old side is compared. If one side as a whole is null, the result is that of Compute.
func ComputeLeft(before, after any) Diff {
	return computeInScope(before, after, leftScope)
}

// ComputeRight is [Compute] without the keys that only the old mapping has: the counterpart of [ComputeLeft].
func ComputeRight(before, after any) Diff {
	return computeInScope(before, after, rightScope)
}

// MaxDepth is the largest number of keys in the path of an item. A user can nest an object thousands of times, and the
// paths to all changes in it would take memory in the square of its size. Kopf fails for objects that are nested so
// deeply.
const MaxDepth = 128

// scope selects the keys of mappings to compare.
type scope int

const (
	fullScope  scope = iota // the keys of both sides
	leftScope               // the keys of the old side
	rightScope              // the keys of the new side
)

const (
	// minDepthLimit is the number of keys that a path may always have.
	minDepthLimit = 8
	// maxPathKeys limits the number of keys in all paths of one diff: 16 MiB of string headers.
	maxPathKeys = 1 << 20
)

// computeInScope compares two values within a scope.
func computeInScope(before, after any, scope scope) Diff {
	c := comparison{scope: scope, before: before, after: after}
	c.compareValues(before, after, 0)
	return c.items
}

// comparison collects items while it traverses both values.
//
// An item gets a path of its final length, but without keys; each level sets its own key on the way back. So the
// traversal does not carry a path, and it does not allocate if there are no differences.
type comparison struct {
	scope         scope
	before, after any // the compared values as a whole
	depthLimit    int // the depth limit for comparing key by key; zero until it is computed
	items         Diff
}

// comparesKeyByKey reports whether mappings at this depth are compared key by key. It counts the keys only if the
// values are deep, because that traverses both of them.
func (c *comparison) comparesKeyByKey(depth int) bool {
	if depth < minDepthLimit {
		return true
	}
	if c.depthLimit == 0 {
		c.depthLimit = min(MaxDepth, max(minDepthLimit,
			maxPathKeys/max(countNestedKeys(c.before)+countNestedKeys(c.after), 1)))
	}
	return depth < c.depthLimit
}

// countNestedKeys returns the number of keys in a mapping and in all nested mappings, without those inside of lists.
// Lists are compared as a whole, so their keys have no paths.
func countNestedKeys(value any) int {
	mapping, _ := value.(map[string]any)
	count := len(mapping)
	for _, inner := range mapping {
		count += countNestedKeys(inner)
	}
	return count
}

// compareValues compares two values, either of which can be null.
func (c *comparison) compareValues(before, after any, depth int) {
	switch gone, here := isNull(before), !isNull(after); {
	case gone && here:
		c.addItem(Item{Op: Add, New: after}, depth)
	case gone:
	case !here:
		c.addItem(Item{Op: Remove, Old: before}, depth)
	default:
		c.compareNonNull(before, after, depth)
	}
}

// compareNonNull compares two values that are not null.
func (c *comparison) compareNonNull(before, after any, depth int) {
	beforeMapping, beforeOK := before.(map[string]any)
	afterMapping, afterOK := after.(map[string]any)
	switch {
	case beforeOK && afterOK && c.comparesKeyByKey(depth):
		c.compareMappings(beforeMapping, afterMapping, depth)
	// Below the depth limit, the mappings are one item, but the same rules decide whether they differ.
	case beforeOK && afterOK:
		if c.mappingsDiffer(beforeMapping, afterMapping) {
			c.addItem(Item{Op: Change, Old: before, New: after}, depth)
		}
	case !Equal(before, after):
		c.addItem(Item{Op: Change, Old: before, New: after}, depth)
	}
}

// compareMappings compares the keys in the order that [Diff] promises. A scope omits one of the first two groups.
func (c *comparison) compareMappings(before, after map[string]any, depth int) {
	if c.scope != leftScope {
		start := len(c.items)
		for key, value := range after {
			if _, both := before[key]; !both {
				c.compareKey(key, nil, value, depth)
			}
		}
		c.sortByKey(start, depth)
	}
	if c.scope != rightScope {
		start := len(c.items)
		for key, value := range before {
			if _, both := after[key]; !both {
				c.compareKey(key, value, nil, depth)
			}
		}
		c.sortByKey(start, depth)
	}
	start := len(c.items)
	for key, value := range before {
		if other, both := after[key]; both {
			c.compareKey(key, value, other, depth)
		}
	}
	c.sortByKey(start, depth)
}

// mappingsDiffer reports whether comparing the mappings key by key would find a difference, by the same rules.
func (c *comparison) mappingsDiffer(before, after map[string]any) bool {
	for key, value := range after {
		if _, both := before[key]; !both && c.scope != leftScope && !isNull(value) {
			return true
		}
	}
	for key, value := range before {
		other, both := after[key]
		if both && c.valuesDiffer(value, other) || !both && c.scope != rightScope && !isNull(value) {
			return true
		}
	}
	return false
}

// valuesDiffer reports the same for two values of any type.
func (c *comparison) valuesDiffer(before, after any) bool {
	beforeMapping, _ := before.(map[string]any)
	afterMapping, _ := after.(map[string]any)
	if beforeMapping != nil && afterMapping != nil {
		return c.mappingsDiffer(beforeMapping, afterMapping)
	}
	return !Equal(before, after)
}

// compareKey compares the values of one key. An absent value is nil.
func (c *comparison) compareKey(key string, before, after any, depth int) {
	start := len(c.items)
	c.compareValues(before, after, depth+1)
	// The items of this key have a path already, in which this level is still empty.
	for i := range c.items[start:] {
		c.items[start+i].Path[depth] = key
	}
}

// addItem appends an item with an empty path of the final length.
func (c *comparison) addItem(item Item, depth int) {
	if depth > 0 {
		item.Path = make(Path, depth)
	}
	c.items = append(c.items, item)
}

// sortByKey sorts the items since start by their keys at this depth, because Go iterates over maps in random order.
//
// The items below one key are already sorted by the deeper levels, and a stable sort keeps their order. If there is
// only one key, as in a chain of mappings, nothing has to be sorted.
func (c *comparison) sortByKey(start, depth int) {
	items := c.items[start:]
	if len(items) < 2 || items[0].Path[depth] == items[len(items)-1].Path[depth] {
		return
	}
	slices.SortStableFunc(items, func(a, b Item) int { return strings.Compare(a.Path[depth], b.Path[depth]) })
}
