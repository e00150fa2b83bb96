package jsontext_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

func decodedObject(t *testing.T, text string) *jsontext.LazyObject {
	t.Helper()
	o := jsontext.New([]byte(text))
	if _, err := o.Value(); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return o
}

// isSameMap returns whether two mappings are the same map.
func isSameMap(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

func TestAfterShares(t *testing.T) {
	former := decodedObject(t, `{"kind":"K","metadata":{"name":"n","labels":{"a":"b"},"resourceVersion":"1"},
		"spec":{"x":{"y":[1,2.5]}},"status":{"z":1}}`)
	later := jsontext.NewAfter([]byte(`{"kind":"K","metadata":{"labels":{"a":"b"},"name":"n","resourceVersion":"2"},`+
		`"spec":{"x":{"y":[1,2.5]}},"status":{"z":2}}`), former)
	if !later.IsDecoded() {
		t.Error("a later state with a decoded former one must count as decoded")
	}
	was, err := former.Value()
	if err != nil {
		t.Fatal(err)
	}
	is, err := later.Value()
	if err != nil {
		t.Fatal(err)
	}
	metadata := func(value map[string]any) map[string]any { m, _ := value["metadata"].(map[string]any); return m }
	if !isSameMap(was["spec"], is["spec"]) || !isSameMap(metadata(was)["labels"], metadata(is)["labels"]) {
		t.Error("unchanged parts were decoded again")
	}
	want := map[string]any{
		"kind": "K", "spec": map[string]any{"x": map[string]any{"y": []any{int64(1), 2.5}}},
		"metadata": map[string]any{"name": "n", "labels": map[string]any{"a": "b"}, "resourceVersion": "2"},
		"status":   map[string]any{"z": int64(2)},
	}
	if d := cmp.Diff(want, is); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if d := cmp.Diff("1", metadata(was)["resourceVersion"]); d != "" {
		t.Errorf("the former state has changed: -want, +got:\n%s", d)
	}
}

// pairs are former and later states. The later state must equal its text, whatever the two have in common.
var pairs = map[string]struct{ reason, former, later string }{
	"Same":    {"an unchanged text gives the same value", `{"a":{"b":1}}`, `{"a":{"b":1}}`},
	"Escaped": {"a key that occurs a second time with escapes is read correctly", `{"a":1,"\u0061":2}`, `{"a":1}`},
	"EscapedMid": {"keys after an escaped key are read correctly",
		`{"a":1,"\u0062":2,"c":3}`, `{"a":1,"\u0062":2,"c":4}`},
	"EscapedNow": {"a key that occurs a second time with escapes in the later text is read correctly",
		`{"a":1}`, `{"a":1,"\u0061":2}`},
	"Twice":    {"the last of repeated keys of the former text counts", `{"a":{"x":1},"a":{"y":2}}`, `{"a":{"x":1}}`},
	"TwiceNow": {"the last of repeated keys of the later text counts", `{"a":{"x":1}}`, `{"a":{"x":1},"a":{"y":2}}`},
	"Within": {"the last of repeated keys counts at any depth",
		`{"a":{"b":{"c":1},"b":{"c":2}}}`, `{"a":{"b":{"c":1}}}`},
	"Spaces": {"white space does not change the value", `{"a":{"b":1}}`, ` { "a" : { "b" : 1 } } `},
	"Types": {"a mapping can become a value of another type",
		`{"a":{"b":1},"c":1}`, `{"a":[{"b":1}],"c":{"d":{}}}`},
	"Null": {"a null is a value", `{"a":null,"b":{"c":null}}`, `{"a":null,"b":{"c":null,"d":null}}`},
	"Numbers": {"a number with another text can have another type",
		`{"a":{"b":1},"c":1e3}`, `{"a":{"b":1.0},"c":1e3}`},
	"Huge":    {"an integer beyond int64 is read", `{"a":1}`, `{"a":18446744073709551615}`},
	"TooHuge": {"a number beyond float64 is an error", `{"a":1}`, `{"a":{"b":1e999}}`},
	"Broken":  {"invalid UTF-8 is replaced", "{\"a\":{\"\xff\":1}}", "{\"a\":{\"\xff\":1,\"b\":2}}"},
	"Wide": {"an object with too many keys to compare is read correctly", objectWithKeys(1, 40),
		objectWithKeys(2, 40)},
	"WideNow": {"a later object with too many keys to compare is read correctly", objectWithKeys(1, 20),
		objectWithKeys(1, 40)},
	"NoObject": {"a later text without an object is read correctly", `{"a":1}`, `null`},
	"Deep": {"levels below those that are compared are decoded as a whole",
		`{"a":{"b":{"c":{"d":1}}}}`, `{"a":{"b":{"c":{"d":2}}}}`},
}

// objectWithKeys returns an object with the given number of keys.
func objectWithKeys(value, keys int) string {
	text := `{"a":1`
	for i := range keys {
		text += fmt.Sprintf(`,"key%d":%d`, i, value)
	}
	return text + "}"
}

func TestAfterIsWhatTheTextSays(t *testing.T) {
	for name, tc := range pairs {
		t.Run(name, func(t *testing.T) { requireAfter(t, tc.reason, []byte(tc.former), []byte(tc.later)) })
	}
	for name, former := range map[string]*jsontext.LazyObject{
		"None": nil, "Value": jsontext.NewFromValue(map[string]any{"a": int64(2)}),
		"NotDecoded": jsontext.New([]byte(`{"a":1}`)),
	} {
		o := jsontext.NewAfter([]byte(`{"a":1}`), former)
		if value, err := o.Value(); err != nil || cmp.Diff(map[string]any{"a": int64(1)}, value) != "" {
			t.Errorf("%s: %v, error %v", name, value, err)
		}
	}
}

func requireAfter(t *testing.T, reason string, formerText, text []byte) {
	t.Helper()
	former := jsontext.New(formerText)
	_, _ = former.Value()
	got, err := jsontext.NewAfter(text, former).Value()
	want, wantErr := jsontext.New(text).Value()
	if d := cmp.Diff(want, got); d != "" || (err == nil) != (wantErr == nil) {
		t.Errorf("%s: got error %v, want %v; -want, +got:\n%s", reason, err, wantErr, d)
	}
}

func FuzzAfter(f *testing.F) {
	for _, tc := range pairs {
		f.Add([]byte(tc.former), []byte(tc.later))
	}
	f.Fuzz(func(t *testing.T, former, later []byte) {
		for _, text := range [][]byte{former, later} {
			if _, err := jsontext.New(text).Value(); err != nil {
				t.Skip("objects have well-formed texts")
			}
		}
		requireAfter(t, "fuzzed", former, later)
	})
}
