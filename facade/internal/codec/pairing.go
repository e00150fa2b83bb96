package codec

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// pairing finds the former places of the items of one list. Each former item is found once at most.
type pairing struct {
	raw, before, after []any
	origins            []int  // the former place of each item; -1 if none was found
	used               []bool // by former places
	lost               []int  // former places of items that are perhaps still there, and were not recognised
}

func newPairing(raw, before, after []any) *pairing {
	return &pairing{
		raw: raw, before: before, after: after,
		origins: slices.Repeat([]int{-1}, len(after)), used: make([]bool, len(before)),
	}
}

func (p *pairing) pair(item, former int) { p.origins[item], p.used[former] = former, true }

// identified are the places of items by their identities, before and after the change.
type identified struct{ before, after map[string][]int }

// choose identifies the items by the first keys that all former items have, and that are unique. Keys that are unique
// in the new list as well go first: the others do not tell all of its items apart. Nil if there are none.
func (p *pairing) choose(candidates [][]string) (chosen *identified) {
	for _, keys := range candidates {
		before := identify(p.before, keys, true)
		if len(before) < len(p.before) {
			continue
		}
		after := identify(p.after, keys, false)
		unique := true
		for _, places := range after {
			unique = unique && len(places) == 1
		}
		if unique {
			return &identified{before, after}
		}
		if chosen == nil {
			chosen = &identified{before, after}
		}
	}
	return chosen
}

// pairByKeys recognises items by their keys. Of several items with the same key, only one that is as it was is
// recognised: nothing says which of the others are new.
func (p *pairing) pairByKeys(by *identified) {
	for id, items := range by.after {
		places := by.before[id]
		if len(places) == 0 {
			continue
		}
		former, found := places[0], 0
		if len(items) > 1 {
			found = slices.IndexFunc(items, func(i int) bool { return diff.Equal(p.after[i], p.before[former]) })
		}
		if found < 0 {
			p.lost = append(p.lost, former)
		} else {
			p.pair(items[found], former)
		}
	}
}

// pairByValue recognises items without keys by all that they have, and changed items by their place: as long as the
// length stays, and the other items have at most changed places with each other. Otherwise items were added or removed,
// and a changed item can be any of those.
func (p *pairing) pairByValue() {
	sameLength := len(p.before) == len(p.after)
	for i := range p.after {
		if sameLength && diff.Equal(p.after[i], p.before[i]) {
			p.pair(i, i)
		}
	}
	p.pairEqual()
	rest := p.unpaired()
	if sameLength && !slices.ContainsFunc(rest, func(i int) bool { return p.used[i] }) {
		for _, i := range rest {
			p.pair(i, i)
		}
	} else if slices.ContainsFunc(rest, func(i int) bool { return isNested(p.after[i]) }) {
		for i, used := range p.used {
			if !used {
				p.lost = append(p.lost, i)
			}
		}
	}
}

// pairEqual pairs equal items in their order. If there are more of them or fewer than before, nothing says which one is
// new or gone: it makes no difference only if the raw forms are equal, too.
func (p *pairing) pairEqual() {
	before := map[string][]int{}
	for i, item := range p.before {
		if !p.used[i] {
			id := textOf(item)
			before[id] = append(before[id], i)
		}
	}
	after := map[string][]int{}
	for _, i := range p.unpaired() {
		id := textOf(p.after[i])
		after[id] = append(after[id], i)
	}
	for id, items := range after {
		places := before[id]
		if len(places) != len(items) && !p.sameRaw(places) {
			continue
		}
		for n := range min(len(places), len(items)) {
			p.pair(items[n], places[n])
		}
	}
}

// unpaired are the places of items without a former one.
func (p *pairing) unpaired() (places []int) {
	for i, from := range p.origins {
		if from < 0 {
			places = append(places, i)
		}
	}
	return places
}

func (p *pairing) sameRaw(places []int) bool {
	return !slices.ContainsFunc(places, func(i int) bool { return !diff.Equal(p.raw[i], p.raw[places[0]]) })
}

// identify gives the places of items by their identities: of those that have one; or of none, if all should have one.
func identify(items []any, keys []string, all bool) map[string][]int {
	places := map[string][]int{}
	for i, item := range items {
		id := identity(item, keys)
		switch {
		case id != "":
			places[id] = append(places[id], i)
		case all:
			return nil
		}
	}
	return places
}

// identity is one text of the values of the keys; empty if the item has none of them, or if one is no plain value.
func identity(item any, keys []string) string {
	fields, _ := item.(map[string]any)
	id, found := []byte(nil), false
	for _, key := range keys {
		switch value := fields[key].(type) {
		case nil:
			id = append(id, '-')
		case string:
			id, found = strconv.AppendQuote(id, value), true
		case map[string]any, []any:
			return ""
		default:
			id, found = append(id, textOf(value)...), true
		}
		id = append(id, ' ')
	}
	if !found {
		return ""
	}
	return string(id)
}

// textOf is the same text for equal values.
func textOf(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(data)
}
