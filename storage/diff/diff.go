package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// Clone returns a diff that shares nothing with this one, nor with the values that it was computed from.
func (d Diff) Clone() Diff {
	cloned := slices.Clone(d)
	for i, item := range d {
		cloned[i] = Item{Op: item.Op, Path: slices.Clone(item.Path), Old: Copy(item.Old), New: Copy(item.New)}
	}
	return cloned
}

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

// Compute returns all differences between an old and a new value, nil if there are none. Its rules are Kopf's:
//
//   - Null and absence are the same, so {"x": null} does not differ from {}. [Equal] is stricter.
//   - Mappings are compared key by key. Everything else is compared as a whole by [Equal]; so are lists, inside which
//     null and absence do differ.
//   - An empty mapping or list is a value: to null it is a [Remove], from null an [Add].
//
// Below [MaxDepth] keys, mappings are compared as a whole, too: there, an item of one has all of its differences. The
// same holds below fewer keys, but not fewer than eight, if the values have so many keys that the paths to all of them
// would take more than 16 MiB.
//
// Where Kopf follows Python (true equals 1), JSON types count here (deviation D-types): see [Equal].
// Nothing is allocated for values without differences.
func Compute(before, after any) Diff {
	return compute(before, after, full)
}

// ComputeLeft is [Compute] that overlooks the keys of mappings that only the new side has, at any depth: Kopf's diff of
// the left scope. It tells whether all that the old side asks for has come true in the new one, whatever else is there.
// A key that the old side has with a null is not overlooked. Where one side as a whole is null, there is nothing to
// overlook.
func ComputeLeft(before, after any) Diff {
	return compute(before, after, left)
}

// ComputeRight is [Compute] that overlooks the keys of mappings that only the old side has: the mirror of
// [ComputeLeft].
func ComputeRight(before, after any) Diff {
	return compute(before, after, right)
}

// MaxDepth is how many keys the path of an item has at most. Somebody may nest an object thousands of times: paths to
// all that has changed in it would take as much as the square of its size. Kopf fails for objects that are nested that
// deeply.
const MaxDepth = 128

// scope says which keys of mappings are looked at.
type scope int

const (
	full  scope = iota // the keys of both sides
	left               // the keys of the old side
	right              // the keys of the new side
)

const (
	// shallow is how many keys a path may have in any case.
	shallow = 8
	// mostPathKeys is how many keys the paths of one diff may have together.
	mostPathKeys = 1 << 20
)

func compute(before, after any, scope scope) Diff {
	c := comparison{scope: scope, before: before, after: after}
	c.values(before, after, 0)
	return c.items
}

// comparison collects items while it walks down both values at once.
//
// An item is born with a path of its final length, but blank; every level fills in its own key on the way back. So
// the walk carries no path, and a walk that finds nothing allocates nothing.
type comparison struct {
	scope         scope
	before, after any // as a whole
	deepest       int // how deep mappings are compared key by key; zero if that is not known yet
	items         Diff
}

// enters tells whether mappings at this depth are compared key by key. The keys are counted for deep ones only.
func (c *comparison) enters(depth int) bool {
	if depth < shallow {
		return true
	}
	if c.deepest == 0 {
		c.deepest = min(MaxDepth, max(shallow, mostPathKeys/max(keysIn(c.before)+keysIn(c.after), 1)))
	}
	return depth < c.deepest
}

// keysIn counts the keys of a mapping and of all mappings in it, but not of those in lists.
func keysIn(value any) int {
	mapping, _ := value.(map[string]any)
	count := len(mapping)
	for _, inner := range mapping {
		count += keysIn(inner)
	}
	return count
}

func (c *comparison) values(before, after any, depth int) {
	switch gone, here := isNull(before), !isNull(after); {
	case gone && here:
		c.add(Item{Op: Add, New: after}, depth)
	case gone:
	case !here:
		c.add(Item{Op: Remove, Old: before}, depth)
	default:
		c.present(before, after, depth)
	}
}

// present compares two values of which none is null.
func (c *comparison) present(before, after any, depth int) {
	beforeMapping, beforeOK := before.(map[string]any)
	afterMapping, afterOK := after.(map[string]any)
	switch {
	case beforeOK && afterOK && c.enters(depth):
		c.mappings(beforeMapping, afterMapping, depth)
	case beforeOK && afterOK:
		if c.differ(beforeMapping, afterMapping) {
			c.add(Item{Op: Change, Old: before, New: after}, depth)
		}
	case !Equal(before, after):
		c.add(Item{Op: Change, Old: before, New: after}, depth)
	}
}

// mappings looks at the keys in the order promised by [Diff]; a scope leaves one of the first two groups out.
func (c *comparison) mappings(before, after map[string]any, depth int) {
	if c.scope != left {
		start := len(c.items)
		for key, value := range after {
			if _, both := before[key]; !both {
				c.key(key, nil, value, depth)
			}
		}
		c.sort(start, depth)
	}
	if c.scope != right {
		start := len(c.items)
		for key, value := range before {
			if _, both := after[key]; !both {
				c.key(key, value, nil, depth)
			}
		}
		c.sort(start, depth)
	}
	start := len(c.items)
	for key, value := range before {
		if other, both := after[key]; both {
			c.key(key, value, other, depth)
		}
	}
	c.sort(start, depth)
}

// differ tells whether the comparison would find anything, by the same rules.
func (c *comparison) differ(before, after map[string]any) bool {
	for key, value := range after {
		if _, both := before[key]; !both && c.scope != left && !isNull(value) {
			return true
		}
	}
	for key, value := range before {
		other, both := after[key]
		if both && c.differing(value, other) || !both && c.scope != right && !isNull(value) {
			return true
		}
	}
	return false
}

func (c *comparison) differing(before, after any) bool {
	beforeMapping, _ := before.(map[string]any)
	afterMapping, _ := after.(map[string]any)
	if beforeMapping != nil && afterMapping != nil {
		return c.differ(beforeMapping, afterMapping)
	}
	return !Equal(before, after)
}

// key compares the values of one key, either of which may be absent, and so nil.
func (c *comparison) key(key string, before, after any, depth int) {
	start := len(c.items)
	c.values(before, after, depth+1)
	for i := range c.items[start:] {
		c.items[start+i].Path[depth] = key
	}
}

func (c *comparison) add(item Item, depth int) {
	if depth > 0 {
		item.Path = make(Path, depth)
	}
	c.items = append(c.items, item)
}

// sort brings the items since start into the order of their keys at this depth, as Go visits maps in random order. The
// items below one key follow each other, and keep the order that the levels below gave them. So those of one key are
// moved together, and nothing is done where there is one key, as in a chain of mappings.
func (c *comparison) sort(start, depth int) {
	items := c.items[start:]
	if len(items) < 2 || items[0].Path[depth] == items[len(items)-1].Path[depth] {
		return
	}
	if len(items) == 2 {
		if items[0].Path[depth] > items[1].Path[depth] {
			items[0], items[1] = items[1], items[0]
		}
		return
	}
	var runs []Diff
	for from, i := 0, 1; i <= len(items); i++ {
		if i == len(items) || items[i].Path[depth] != items[from].Path[depth] {
			runs = append(runs, items[from:i])
			from = i
		}
	}
	slices.SortFunc(runs, func(a, b Diff) int { return strings.Compare(a[0].Path[depth], b[0].Path[depth]) })
	sorted := slices.Concat(runs...)
	copy(items, sorted)
}
