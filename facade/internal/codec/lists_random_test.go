package codec_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

// editedLists is a list after random edits, with the original position of each item: -1 for a new one.
type editedLists struct {
	random   *rand.Rand
	items    []named
	numbers  []int
	hasMoved bool // whether items were added, removed or moved
	nextName int
}

func (e *editedLists) step(keyed bool) {
	at := 0
	if len(e.items) > 0 {
		at = e.random.IntN(len(e.items))
	}
	e.nextName++
	switch move := e.random.IntN(5); {
	case move == 0 || len(e.items) == 0:
		e.hasMoved = true
		fresh := named{Size: 1000 + e.nextName}
		if keyed {
			fresh.Name = fmt.Sprint("new", e.nextName)
		}
		e.items, e.numbers = slices.Insert(e.items, at, fresh), slices.Insert(e.numbers, at, -1)
	case move == 1:
		e.hasMoved = true
		e.items, e.numbers = slices.Delete(e.items, at, at+1), slices.Delete(e.numbers, at, at+1)
	case move == 2:
		e.hasMoved = true
		to := e.random.IntN(len(e.items))
		e.items[at], e.items[to] = e.items[to], e.items[at]
		e.numbers[at], e.numbers[to] = e.numbers[to], e.numbers[at]
	case move == 3 && keyed && len(e.items[at].Parts) > 0:
		inner := &editedLists{random: e.random, items: e.items[at].Parts}
		for i := range inner.items {
			inner.numbers = append(inner.numbers, i)
		}
		inner.step(true)
		e.items[at].Parts = inner.items
	default:
		e.items[at].Size = 1000 + e.nextName
	}
}

// randomItems returns items with a field that the Go type does not have. Its value is the position of the item.
func randomItems(random *rand.Rand, keyed bool, depth int) (items []any) {
	items = []any{}
	for i := range random.IntN(5 + depth) {
		item := object{"name": fmt.Sprint("n", i), "size": int64(random.IntN(3)), "novel": int64(i)}
		if !keyed {
			item["name"], item["size"] = "", int64(i)
		}
		if keyed && depth > 0 {
			item["parts"] = randomItems(random, true, depth-1)
		}
		items = append(items, item)
	}
	return items
}

func TestRandomEditsNeverMixItems(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 38))
		keyed := seed%2 == 0
		items := randomItems(random, keyed, 1)
		e := &editedLists{random: random}
		change := func(s *listingSpec) {
			if e.items == nil {
				e.items = codec.DeepCopy(s.Named)
				for i := range e.items {
					e.numbers = append(e.numbers, i)
				}
				for range 1 + random.IntN(6) {
					e.step(keyed)
				}
			}
			s.Named = codec.DeepCopy(e.items)
		}
		got, _ := changeList(t, "named", items, change, codec.Lists{}).([]any)
		if len(got) != len(e.items) {
			t.Fatalf("seed %d: got %d items, want %d", seed, len(got), len(e.items))
		}
		for i, item := range got {
			checkItem(t, fmt.Sprintf("seed %d, item %d of %v", seed, i, got), item, e, i, items, keyed)
		}
	}
}

// checkItem reports fields that belong to other items. An item with a key, or in a list without moves, keeps its own
// fields.
func checkItem(t *testing.T, where string, item any, e *editedLists, at int, items []any, keyed bool) {
	t.Helper()
	mapping, _ := item.(object)
	novel, has := mapping["novel"]
	number := e.numbers[at]
	sameLength := len(items) == len(e.items)
	switch {
	case mapping["size"] != any(int64(e.items[at].Size)) && e.items[at].Size != 0:
		t.Errorf("%s: the size is not the changed one", where)
	case number < 0 && has && (keyed || !sameLength):
		t.Errorf("%s: a new item has inherited %v", where, novel)
	case number >= 0 && has && novel != int64(number) && (keyed || !sameLength):
		t.Errorf("%s: it has the field of item %v", where, novel)
	case number >= 0 && !has && (keyed || !e.hasMoved):
		t.Errorf("%s: it lost its field", where)
	}
	if number < 0 {
		return
	}
	before, _ := items[number].(object)
	checkParts(t, where, before["parts"], mapping["parts"])
}

// checkParts reports inner items whose field differs from that of the former item with the same name.
func checkParts(t *testing.T, where string, before, after any) {
	t.Helper()
	former := map[any]object{}
	parts, _ := before.([]any)
	for _, part := range parts {
		part, _ := part.(object)
		former[part["name"]] = part
	}
	parts, _ = after.([]any)
	for _, part := range parts {
		part, _ := part.(object)
		was := former[part["name"]]
		if part["novel"] != was["novel"] {
			t.Errorf("%s: inner item %v has %v, want %v", where, part["name"], part["novel"], was["novel"])
		}
		checkParts(t, where, was["parts"], part["parts"])
	}
}
