package jsontext_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

func TestStrings(t *testing.T) {
	path := []string{"metadata", "uid"}
	tests := map[string]struct{ reason, text, want string }{
		"plain":      {"it is there", `{"metadata":{"uid":"u"}}`, "u"},
		"last":       {"others go before", `{"a":[{"metadata":1}],"metadata":{"b":{"uid":"x"},"uid":"u"}}`, "u"},
		"spaces":     {"who writes by hand has some", " \n{ \"a\" : 1e3 ,\t\"metadata\" : { \"uid\" : \"u\" } } ", "u"},
		"escapes":    {"texts may have quotes", `{"a\"{":"}\\\"","metadata":{"x":"\\","uid":"\"u\u0021"}}`, `"u!`},
		"twice":      {"decoders take the last one", `{"metadata":{"uid":"a"},"metadata":{"uid":"b"}}`, "b"},
		"none":       {"it has no metadata", `{"spec":{"uid":"u"}}`, ""},
		"empty":      {"it has nothing", `{}`, ""},
		"other type": {"it is no text", `{"metadata":{"uid":5}}`, ""},
		"a list":     {"it is no object", `{"metadata":[{"uid":"u"}]}`, ""},
		"null":       {"it is nothing", `{"metadata":null}`, ""},
		"inside":     {"a text is not looked into", `{"metadata":{"a":"\"uid\":\"x\""}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := jsontext.New([]byte(tc.text))
			if got := object.String(path...); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			value, err := object.Value()
			if err != nil {
				t.Fatal(err)
			}
			if got := jsontext.Of(value).String(path...); got != tc.want {
				t.Errorf("%s: the value says %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestValues(t *testing.T) {
	object := jsontext.New([]byte(`{"a":1,"b":[1.5,null]}`))
	first, err := object.Value()
	if d := cmp.Diff(map[string]any{"a": int64(1), "b": []any{1.5, nil}}, first); d != "" || err != nil {
		t.Errorf("-want, +got, %v:\n%s", err, d)
	}
	first["c"] = true // only to see whose it is
	if second, _ := object.Value(); len(second) != len(first) {
		t.Errorf("it was decoded again: %v", second)
	}
	if _, err := jsontext.New([]byte(`{"a":1e999}`)).Value(); err == nil {
		t.Error("no float64 is that large, but there is no error")
	}
	var none *jsontext.Object
	if value, err := none.Value(); value != nil || err != nil || none.Text() != nil || none.String("a") != "" {
		t.Errorf("there is nothing, but got %v, %v", value, err)
	}
	if jsontext.Of(nil) != nil {
		t.Error("no value is an object")
	}
}

// FuzzString finds in any object what a decoder finds there.
func FuzzString(f *testing.F) {
	for _, seed := range []string{
		`{"a":{"b":"c"}}`, `{"a":[{}],"b":"\\"}`, ` { "a" : { "b" : "\u0041" } }`, `{"a":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var decoded map[string]json.RawMessage
		if json.Unmarshal(text, &decoded) != nil || decoded == nil {
			t.Skip("it is no object")
		}
		var inner map[string]json.RawMessage
		_ = json.Unmarshal(decoded["a"], &inner)
		var want string
		_ = json.Unmarshal(inner["b"], &want)
		if got := jsontext.New(text).String("a", "b"); got != want {
			// A key with escapes is passed over, so another one of the same name counts.
			if !containsEscape(text) {
				t.Errorf("%s: got %q, want %q", text, got, want)
			}
		}
	})
}

func containsEscape(text []byte) bool {
	for _, c := range text {
		if c == '\\' {
			return true
		}
	}
	return false
}
