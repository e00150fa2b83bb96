package jsontext_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

func TestStrings(t *testing.T) {
	path := []string{"metadata", "uid"}
	tests := map[string]struct{ reason, text, want string }{
		"plain": {"a string at the path is found", `{"metadata":{"uid":"u"}}`, "u"},
		"last": {"a string after other members is found",
			`{"a":[{"metadata":1}],"metadata":{"b":{"uid":"x"},"uid":"u"}}`, "u"},
		"spaces": {"a string in a text with white space is found",
			" \n{ \"a\" : 1e3 ,\t\"metadata\" : { \"uid\" : \"u\" } } ", "u"},
		"escapes": {"escapes in strings are decoded",
			`{"a\"{":"}\\\"","metadata":{"x":"\\","uid":"\"u\u0021"}}`, `"u!`},
		"twice": {"the last of repeated keys counts, as for decoders",
			`{"metadata":{"uid":"a"},"metadata":{"uid":"b"}}`, "b"},
		"none":       {"an object without metadata gives an empty string", `{"spec":{"uid":"u"}}`, ""},
		"empty":      {"an empty object gives an empty string", `{}`, ""},
		"other type": {"a number gives an empty string", `{"metadata":{"uid":5}}`, ""},
		"a list":     {"a list in place of an object gives an empty string", `{"metadata":[{"uid":"u"}]}`, ""},
		"null":       {"a null gives an empty string", `{"metadata":null}`, ""},
		"inside":     {"the contents of a string are not searched", `{"metadata":{"a":"\"uid\":\"x\""}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := jsontext.New([]byte(tc.text))
			if got := object.StringAt(path...); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			value, err := object.Value()
			if err != nil {
				t.Fatal(err)
			}
			if got := jsontext.NewFromValue(value).StringAt(path...); got != tc.want {
				t.Errorf("%s: the value gives %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestDecoded shows that an object counts as decoded after its first use, or if it was created from a value.
func TestDecoded(t *testing.T) {
	object := jsontext.New([]byte(`{"a":1}`))
	if object.IsDecoded() || !jsontext.NewFromValue(map[string]any{"a": 1}).IsDecoded() {
		t.Error("a new text must not count as decoded, and a value must")
	}
	if _, err := object.Value(); err != nil || !object.IsDecoded() {
		t.Errorf("a text must count as decoded after its value was read: %v", err)
	}
}

func TestIntoMaps(t *testing.T) {
	var object, broken map[string]any
	if !jsontext.New([]byte(`{"a":1}`)).DecodeInto(&object) || object["a"] != int64(1) {
		t.Errorf("want the decoded object, got %v", object)
	}
	if jsontext.New([]byte(`{"a":1e999}`)).DecodeInto(&broken) {
		t.Errorf("a number beyond float64 must not be decoded, got %v", broken)
	}
}

func TestValues(t *testing.T) {
	object := jsontext.New([]byte(`{"a":1,"b":[1.5,null]}`))
	first, err := object.Value()
	if d := cmp.Diff(map[string]any{"a": int64(1), "b": []any{1.5, nil}}, first); d != "" || err != nil {
		t.Errorf("-want, +got, %v:\n%s", err, d)
	}
	first["c"] = true // to find out whether the value is shared
	if second, _ := object.Value(); len(second) != len(first) {
		t.Errorf("the value must be decoded once, got another one: %v", second)
	}
	if _, err := jsontext.New([]byte(`{"a":1e999}`)).Value(); err == nil {
		t.Error("a number beyond float64 must be an error")
	}
	var none *jsontext.LazyObject
	if value, err := none.Value(); value != nil || err != nil || none.Text() != nil || none.StringAt("a") != "" {
		t.Errorf("a nil object must be empty, got %v, %v", value, err)
	}
	if jsontext.NewFromValue(nil) != nil {
		t.Error("a nil value must give a nil object")
	}
}

// source is an object with a number, whose metadata is available separately.
type source struct {
	requestedForms []string
	wantWhenBroken bool
}

var errBroken = errors.New("the source is broken")

func (s *source) JSON() ([]byte, error) {
	s.requestedForms = append(s.requestedForms, "JSON")
	if s.wantWhenBroken {
		return nil, errBroken
	}
	return []byte(`{"metadata":{"uid":"u","labels":{"a":"b"}},"a":1}`), nil
}

func (s *source) MetadataJSON() ([]byte, error) {
	s.requestedForms = append(s.requestedForms, "metadata")
	if s.wantWhenBroken {
		return nil, errBroken
	}
	return []byte(`{"metadata":{"uid":"u","labels":{"a":"b"}}}`), nil
}

func (s *source) DecodeInto(into any) bool {
	number, is := into.(*int)
	if is && !s.wantWhenBroken {
		*number = 1
	}
	return is && !s.wantWhenBroken
}

// TestSources shows that a source encodes its object only for callers that need JSON, and only once.
func TestSources(t *testing.T) {
	tests := map[string]struct {
		reason         string
		call           func(*jsontext.LazyObject) any
		want           any
		wantForms      []string
		wantWhenBroken any // the result with a broken source
	}{
		"Encoded": {"Encoded does not need the source",
			func(o *jsontext.LazyObject) any { return o.IsEncoded() }, true, nil, true},
		"Into": {"a known type is filled without JSON", func(o *jsontext.LazyObject) any {
			var number int
			return [2]any{o.DecodeInto(&number), number}
		}, [2]any{true, 1}, nil, [2]any{false, 0}},
		"IntoAnother": {"an unknown type is decoded from JSON", func(o *jsontext.LazyObject) any {
			var found struct {
				A int `json:"a"`
			}
			return [2]any{o.DecodeInto(&found), found.A}
		}, [2]any{true, 1}, []string{"JSON"}, [2]any{false, 0}},
		"UID": {
			"the uid is read from the metadata alone",
			func(o *jsontext.LazyObject) any { return o.StringAt("metadata", "uid") }, "u",
			[]string{"metadata"}, "",
		},
		"Labels": {"labels are read from the metadata alone", func(o *jsontext.LazyObject) any {
			return o.MappingAt("metadata", "labels")
		}, map[string]any{"a": "b"}, []string{"metadata"}, map[string]any(nil)},
		"Elsewhere": {
			"a field outside of the metadata is read from JSON",
			func(o *jsontext.LazyObject) any { return o.MappingAt("b") }, map[string]any(nil),
			[]string{"JSON"}, map[string]any(nil),
		},
		"Whole": {"the whole object is read from JSON", func(o *jsontext.LazyObject) any { return len(o.MappingAt()) },
			2,
			[]string{"JSON"}, 0},
		"Value": {"the value is decoded once for all callers", func(o *jsontext.LazyObject) any {
			first, err := o.Value()
			_, _ = o.Value()
			return [2]any{first["a"], err}
		}, [2]any{int64(1), nil}, []string{"JSON"}, [2]any{nil, errBroken}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var whole source
			if d := cmp.Diff(tc.want, tc.call(jsontext.NewFromSource(&whole))); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if d := cmp.Diff(tc.wantForms, whole.requestedForms); d != "" {
				t.Errorf("%s: -want, +asked for:\n%s", tc.reason, d)
			}
			got := tc.call(jsontext.NewFromSource(&source{wantWhenBroken: true}))
			if d := cmp.Diff(tc.wantWhenBroken, got, cmpopts.EquateErrors()); d != "" {
				t.Errorf("%s: with a broken source: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestMappings shows that a mapping is found in a text like in its value.
func TestMappings(t *testing.T) {
	for text, want := range map[string]map[string]any{
		`{"a":{"b":{"c":1}}}`: {"c": int64(1)}, `{"a":{"b":{}}}`: {}, `{"a":{"b":5}}`: nil, `{"a":[]}`: nil, `{}`: nil,
		`{"a":{"b":null}}`: nil, `{"a":{"b":{"c":nul}}}`: nil,
	} {
		object := jsontext.New([]byte(text))
		if d := cmp.Diff(want, object.MappingAt("a", "b")); d != "" {
			t.Errorf("%s: -want, +got:\n%s", text, d)
		}
		value, err := object.Value()
		if err != nil {
			continue
		}
		if d := cmp.Diff(want, jsontext.NewFromValue(value).MappingAt("a", "b")); d != "" {
			t.Errorf("the value of %s: -want, +got:\n%s", text, d)
		}
	}
	var none *jsontext.LazyObject
	if none.MappingAt("a") != nil || none.IsEncoded() || none.DecodeInto(new(any)) {
		t.Error("a nil object must not have a mapping or an encoding")
	}
}

// FuzzString compares the string of a text with that of the standard decoder.
func FuzzString(f *testing.F) {
	for _, seed := range []string{
		`{"a":{"b":"c"}}`, `{"a":[{}],"b":"\\"}`, ` { "a" : { "b" : "\u0041" } }`, `{"a":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var decoded map[string]json.RawMessage
		if json.Unmarshal(text, &decoded) != nil || decoded == nil {
			t.Skip("the text is not an object")
		}
		var inner map[string]json.RawMessage
		_ = json.Unmarshal(decoded["a"], &inner)
		var want string
		_ = json.Unmarshal(inner["b"], &want)
		if got := jsontext.New(text).StringAt("a", "b"); got != want {
			// A key with escapes is skipped, so another key with the same name counts.
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
