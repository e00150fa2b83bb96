package forgery_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// ids lists the handlers whose records are forged, including an id without a handler.
var ids = []string{"c", "u", "d", "f/spec.value", "p", "p/one", "p/two", "nobody"}

// forger makes up memory, by the seed.
type forger struct{ *rand.Rand }

func (f forger) pick(values ...any) any { return values[f.IntN(len(values))] }

func (f forger) repeatText(text string) string {
	return strings.Repeat(text, 1+f.IntN(20_000)/len(text))
}

func (f forger) timestamp() any {
	return f.pick("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2000-01-01T00:00:05.000001+00:00", "2000-01-01",
		"2000-13-45T99:00:00Z",
		"9999-12-31T23:59:59-23:59", "", f.repeatText("9"), int64(5), nil, true, []any{})
}

func (f forger) count() any {
	return f.pick(
		int64(0), int64(2), int64(3), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt32), 1.5,
		1e30, "many", nil, true,
	)
}

func (f forger) flag() any { return f.pick(true, false, nil, "yes", int64(1)) }

// subrefs are lists of sub-handlers: too many, the same over and over, other memory, no names at all.
func (f forger) subrefs() any {
	var list []any
	for n := range f.IntN(2000) {
		list = append(
			list,
			f.pick(
				"p/one", "p/two", fmt.Sprint("p/", n), "last-handled-configuration", "handled-uid",
				"p/"+strings.Repeat("./", n%12), "",
			),
		)
	}
	return f.pick(list, []any{"p/one"}, []any{"p/" + f.repeatText("€")}, []any{int64(1)}, "p/one", nil, []any{})
}

// key is one that something may have.
type key struct {
	name     string
	newValue func() any
}

// pickKeys has every key with a chance of one in so many.
func (f forger) pickKeys(oneIn int, keys ...key) map[string]any {
	made := map[string]any{}
	for _, k := range keys {
		if f.IntN(oneIn) == 0 {
			made[k.name] = k.newValue()
		}
	}
	return made
}

// record is of a handler that has ended, so it says; or of anything.
func (f forger) record() map[string]any {
	if f.IntN(3) == 0 {
		return map[string]any{
			"purpose": f.pick("create", "update", "delete", nil), "success": true, "started": "2000-01-01T00:00:00Z",
		}
	}
	return f.pickKeys(3, key{"started", f.timestamp}, key{"stopped", f.timestamp}, key{"delayed", f.timestamp},
		key{"retries", f.count},
		key{"success", f.flag}, key{"failure", f.flag}, key{"subrefs", f.subrefs},
		key{"purpose", func() any {
			return f.pick("create", "update", "delete", "resume", "", f.repeatText("p"), "\n\x1b[31m", int64(1), nil)
		}},
		key{"message", func() any { return f.pick("", f.repeatText("€"), "\x00\r\n\u2028", int64(1), nil) }},
		key{"unknown", func() any { return f.pick(nested(500), f.repeatText("u"), nil) }},
	)
}

// endedRecord is a patch of the status by which a handler needs nothing any more, whatever was there before.
func (f forger) endedRecord(id string) map[string]any {
	record := map[string]any{"success": true}
	for _, key := range []string{
		"started", "stopped", "delayed", "purpose", "retries", "failure", "message", "subrefs",
	} {
		record[key] = nil
	}
	return map[string]any{"status": map[string]any{"kopf": map[string]any{"progress": map[string]any{id: record}}}}
}

// nested is a mapping in a mapping, and so on.
func nested(depth int) any {
	var value any = "x"
	for range depth {
		value = map[string]any{"a": value}
	}
	return value
}

func (f forger) essence() map[string]any {
	return f.pickKeys(2,
		key{"spec", func() any {
			return f.pick(
				map[string]any{"value": f.pick("x", int64(1), nil, []any{}, f.repeatText("v"))}, "text", nil, []any{},
				nested(1000), f.wide(),
			)
		}},
		key{"metadata", func() any {
			return f.pick(map[string]any{"labels": f.pick(nil, "x", map[string]any{"a": int64(1)})}, "text", nil)
		}},
		key{"status", func() any { return f.pick(map[string]any{"kopf": "x"}, int64(1), nil) }},
		key{"$digests", func() any {
			return f.pick([]any{[]any{}}, []any{[]any{"spec", "value"}}, f.paths(), []any{int64(1)}, "x")
		}},
		key{"$digest", func() any { return f.pick("x", f.repeatText("d"), nil) }},
	)
}

func (f forger) wide() map[string]any {
	wide := map[string]any{}
	for n := range f.IntN(2000) {
		wide[fmt.Sprint("k", n)] = "v"
	}
	return wide
}

func (f forger) paths() []any {
	var paths []any
	for n := range f.IntN(2000) {
		paths = append(paths, []any{"spec", fmt.Sprint("k", n)})
	}
	return paths
}

// text is what an annotation may hold where JSON is expected.
func (f forger) text(honest any) string {
	texts := []string{
		"", "null", "1", "[]", "{", "{}", `"x"`, `{"spec":1e999}`, `{"spec":1,"spec":{"value":2}}`,
		`{"message":"\ud800"}`, "{\"message\":\"\xff\"}",
		strings.Repeat("[", 100_000), strings.Repeat(
			`{"a":`, 20_000,
		), strings.Repeat(`{"a":`, 1_000) + "1" + strings.Repeat("}", 1_000), f.repeatText(" "),
	}
	if f.IntN(3) == 0 {
		return texts[f.IntN(len(texts))]
	}
	raw, err := json.Marshal(honest)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// annotations is a patch of them.
func (f forger) annotations(prefix string) map[string]any {
	forged := map[string]any{}
	switch f.IntN(6) {
	case 0:
		forged[prefix+"/last-handled-configuration"] = f.text(f.essence())
	case 1:
		forged[prefix+"/handling-configuration"] = f.text(f.essence())
	case 2:
		forged[prefix+"/handled-uid"] = f.pick("", "x", f.repeatText("u"), nil)
	case 3:
		for n := range f.IntN(500) {
			forged[fmt.Sprintf("p%d.org/kopf-managed", n)] = ""
		}
	default:
		id := ids[f.IntN(len(ids))]
		forged[prefix+"/"+strings.ReplaceAll(id, "/", ".")] = f.text(f.record())
	}
	return map[string]any{"metadata": map[string]any{"annotations": forged}}
}

// status is a patch of it.
func (f forger) status() map[string]any {
	if f.IntN(2) == 0 {
		records := map[string]any{"d": f.record(), ids[f.IntN(len(ids))]: f.record()}
		return map[string]any{"status": map[string]any{"kopf": map[string]any{"progress": records}}}
	}
	progress := f.pick(
		map[string]any{ids[f.IntN(len(ids))]: f.record()},
		map[string]any{ids[f.IntN(len(ids))]: f.pick("x", int64(1), []any{})}, "x", nil,
	)
	kopf := f.pick(map[string]any{"progress": progress},
		map[string]any{"last-handled-configuration": f.pick(f.text(f.essence()), f.essence(), int64(1))},
		map[string]any{"dummy": f.repeatText("x")}, "x", nil)
	return map[string]any{"status": map[string]any{"kopf": kopf, ids[f.IntN(len(ids))]: f.pick("x", nil, nested(100))}}
}
