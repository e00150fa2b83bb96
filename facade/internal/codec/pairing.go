package codec

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// pairing matches the items of one list with their former indices. Each former item is matched at most once. A matched
// item keeps its hidden fields, so a wrong match would move them to another item. In doubt, items are not matched, and
// the loss is reported.
type pairing struct {
	raw, before, after []any
	origins            []int // the former index of each item; -1 without a match
	matches            []int // the new index of each former item; -1 without a match
	lostItems          []int // former indices of items that may still exist but were not matched
}

// newPairing starts without any matches.
func newPairing(raw, before, after []any) *pairing {
	return &pairing{
		raw: raw, before: before, after: after,
		origins: slices.Repeat([]int{-1}, len(after)), matches: slices.Repeat([]int{-1}, len(before)),
	}
}

// recordPair records a match.
func (p *pairing) recordPair(item, former int) { p.origins[item], p.matches[former] = former, item }

// identifiedItems holds the indices of items by identity, before and after the change.
type identifiedItems struct{ before, after map[string][]int }

// chooseKeys identifies the items by the first keys that are unique and present in all former items. Keys that are
// unique in the new list as well are preferred, since other keys cannot distinguish all of its items. It returns nil
// without suitable keys.
func (p *pairing) chooseKeys(candidates [][]string) (chosen *identifiedItems) {
	for _, keys := range candidates {
		before := indicesByIdentity(p.before, keys, true)
		// Fewer identities than items mean a duplicate or a missing key.
		if len(before) < len(p.before) {
			continue
		}
		// New items may lack the keys, but those that have them should be unique.
		after := indicesByIdentity(p.after, keys, false)
		unique := true
		for _, places := range after {
			unique = unique && len(places) == 1
		}
		if unique {
			return &identifiedItems{before, after}
		}
		// The first candidate is kept for the case that no other one is unique.
		if chosen == nil {
			chosen = &identifiedItems{before, after}
		}
	}
	return chosen
}

// pairByKeys matches items by their keys. Among several items with the same key, only an unchanged one is matched,
// because nothing shows which of the others are new.
func (p *pairing) pairByKeys(by *identifiedItems) {
	for id, items := range by.after {
		places := by.before[id]
		// A new item has no former one.
		if len(places) == 0 {
			continue
		}
		// The keys are unique among the former items, so there is exactly one.
		former, found := places[0], 0
		if len(items) > 1 {
			found = slices.IndexFunc(items, func(i int) bool { return diff.Equal(p.after[i], p.before[former]) })
		}
		if found < 0 {
			p.lostItems = append(p.lostItems, former)
		} else {
			p.recordPair(items[found], former)
		}
	}
}

// pairByValue matches items without keys by their whole value. Changed items are matched by index if the length is the
// same and the other items have at most swapped places. Otherwise items were added or removed, and a changed item could
// be any of them.
func (p *pairing) pairByValue() {
	sameLength := len(p.before) == len(p.after)
	for i := range p.after {
		// Items at their former index go first, so that equal items do not swap.
		if sameLength && diff.Equal(p.after[i], p.before[i]) {
			p.recordPair(i, i)
		}
	}
	// Then the moved items are found by their value.
	p.pairEqual()
	// The remaining items were added or changed.
	rest := unmatched(p.origins)
	if sameLength && !slices.ContainsFunc(rest, func(i int) bool { return p.matches[i] >= 0 }) {
		for _, i := range rest {
			p.recordPair(i, i)
		}
	} else if slices.ContainsFunc(rest, func(i int) bool { return isNested(p.after[i]) }) {
		// Any of the unmatched former items may still exist in a changed form.
		p.lostItems = unmatched(p.matches)
	}
}

// pairEqual matches equal items in their order. If their number differs from before, nothing shows which one is new or
// removed. Then they are matched only if their raw forms are equal, too.
func (p *pairing) pairEqual() {
	// Items at their old index were paired before.
	before, after := unmatchedByText(p.before, p.matches), unmatchedByText(p.after, p.origins)
	for id, items := range after {
		places := before[id]
		if len(places) != len(items) && !p.haveEqualRaw(places) {
			continue
		}
		for n := range min(len(places), len(items)) {
			p.recordPair(items[n], places[n])
		}
	}
}

// unmatchedByText returns the indices of the items without a match, by their canonical text.
func unmatchedByText(items []any, matches []int) map[string][]int {
	places := map[string][]int{}
	for i, item := range items {
		if matches[i] < 0 {
			text := canonicalText(item)
			places[text] = append(places[text], i)
		}
	}
	return places
}

// unmatched returns the indices of items without a match.
func unmatched(matches []int) (places []int) {
	for i, match := range matches {
		if match < 0 {
			places = append(places, i)
		}
	}
	return places
}

// haveEqualRaw reports whether the former items have equal raw forms, hidden fields included.
func (p *pairing) haveEqualRaw(places []int) bool {
	return !slices.ContainsFunc(places, func(i int) bool { return !diff.Equal(p.raw[i], p.raw[places[0]]) })
}

// indicesByIdentity returns the indices of items by identity. Items without an identity are left out. With all set, one
// such item makes the result empty.
func indicesByIdentity(items []any, keys []string, all bool) map[string][]int {
	places := map[string][]int{}
	for i, item := range items {
		id := itemIdentity(item, keys)
		switch {
		case id != "":
			places[id] = append(places[id], i)
		case all:
			return nil
		}
	}
	return places
}

// itemIdentity returns a text of the values of the keys. It is empty if all keys are absent, or if a value is a map or
// list.
func itemIdentity(item any, keys []string) string {
	fields, _ := item.(map[string]any)
	id, found := []byte(nil), false
	for _, key := range keys {
		switch value := fields[key].(type) {
		case nil:
			// A missing key differs from an empty value, which is quoted.
			id = append(id, '-')
		case string:
			id, found = strconv.AppendQuote(id, value), true
		case map[string]any, []any:
			return ""
		default:
			id, found = append(id, canonicalText(value)...), true
		}
		id = append(id, ' ')
	}
	if !found {
		return ""
	}
	return string(id)
}

// canonicalText returns the same text for equal values.
func canonicalText(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // unreachable: it was decoded from JSON
	}
	return string(data)
}
