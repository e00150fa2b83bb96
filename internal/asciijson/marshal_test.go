package asciijson_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
)

type (
	object = map[string]any
	list   = []any
)

func TestMarshalErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  any
		names  string
	}{
		"NaN": {reason: "a NaN is an error", value: object{"a": list{1.5, math.NaN()}}, names: "a: 1: "},
		"Infinite": {
			reason: "an infinite number is an error", value: object{"a": object{"b": math.Inf(-1)}}, names: "a: b: ",
		},
		"Channel": {reason: "a channel is an error", value: object{"a": make(chan int)}, names: "chan int"},
		"Struct": {
			reason: "a struct is an error", value: list{struct{}{}}, names: "struct {}",
		},
		"BadNumber":   {reason: "a malformed number is an error", value: json.Number("1,2"), names: "1,2"},
		"EmptyNumber": {reason: "an empty number is an error", value: json.Number(""), names: `""`},
		"TextNumber": {reason: "a number that is a JSON text is an error",
			value: json.Number(`"1"`), names: "not a number"},
		"SpaceNumber": {reason: "a number with a space is an error", value: json.Number("1 "), names: "not a number"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := asciijson.Marshal(tc.value)
			if err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("%s\ngot %q and error %v, want one that names %q", tc.reason, text, err, tc.names)
			}
			if size, err := asciijson.EncodedSize(tc.value); err == nil || size != 0 {
				t.Errorf("measuring: got %d, error %v", size, err)
			}
			kept, err := asciijson.AppendValue([]byte("before"), tc.value)
			if delta := cmp.Diff("before", string(kept)); delta != "" || err == nil {
				t.Errorf("appending: got error %v; -want, +got:\n%s", err, delta)
			}
		})
	}
}

func TestMarshal(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  any
		want   string
	}{
		"Null":      {reason: "nil is null", value: nil, want: `null`},
		"NilObject": {reason: "a nil mapping is null", value: object(nil), want: `null`},
		"NilList":   {reason: "a nil slice is null", value: list(nil), want: `null`},
		"Booleans":  {reason: "booleans are true and false", value: list{true, false}, want: `[true,false]`},
		"Empty": {
			reason: "empty mappings and lists are not null",
			value:  object{"a": object{}, "b": list{}}, want: `{"a":{},"b":[]}`,
		},
		"Sorted": {
			reason: "keys are sorted",
			value:  object{"b": object{"d": nil, "c": nil}, "a": nil}, want: `{"a":null,"b":{"c":null,"d":null}}`,
		},
		"Integers": {
			reason: "integers keep all digits", value: list{int64(math.MaxInt64), int64(math.MinInt64), 5, int32(-6)},
			want: `[9223372036854775807,-9223372036854775808,5,-6]`,
		},
		"WholeFloats": {
			reason: "whole floats have a fraction, as in Kopf", value: list{1.0, 0.0, 1e15, float32(2)},
			want: `[1.0,0.0,1000000000000000.0,2.0]`,
		},
		"LargeFloats": {
			reason: "large floats have an exponent, so they are not read as integers",
			value:  list{1152921504606846976.0, 1e16, 1e21, 1e100},
			want:   `[1.152921504606847e+18,1e+16,1e+21,1e+100]`,
		},
		"SmallFloats": {
			reason: "small floats have an exponent from the same bound as in Python",
			value:  list{0.1, 0.0001, 0.00001, 1e-7, 5e-324},
			want:   `[0.1,0.0001,1e-05,1e-07,5e-324]`,
		},
		"Numbers": {
			reason: "numbers as text are copied",
			value:  list{json.Number("0"), json.Number("9"), json.Number("-1.50e3")},
			want:   `[0,9,-1.50e3]`,
		},
		"Html": {
			reason: "HTML characters are not escaped", value: "<a href='x'>&</a>/", want: `"<a href='x'>&</a>/"`,
		},
		"Quotes": {reason: "quotes and backslashes are escaped", value: `"\`, want: `"\"\\"`},
		"Controls": {
			reason: "control characters have the short form of Python, if any", value: "\n\r\t\b\f\x00\x1f\x7f",
			want: `"\n\r\t\b\f\u0000\u001f\u007f"`,
		},
		"Latin": {reason: "characters outside of ASCII are escaped", value: "Ünï", want: `"\u00dcn\u00ef"`},
		"Bounds": {
			reason: "only the first character after printable ASCII is escaped", value: " ~\u0080",
			want: `" ~\u0080"`,
		},
		"Separators": {
			reason: "Unicode separators are escaped", value: "\u2028\u2029\ufffd", want: `"\u2028\u2029\ufffd"`,
		},
		"Surrogates": {
			reason: "characters above the basic plane become two surrogates", value: "😀\U0010FFFF\U00010000",
			want: `"\ud83d\ude00\udbff\udfff\ud800\udc00"`,
		},
		"BrokenUTF8": {
			reason: "invalid UTF-8 becomes replacement characters", value: "a\xff\xfe\xe2\x98b",
			want: `"a\ufffd\ufffd\ufffd\ufffdb"`,
		},
		"EscapedKey": {reason: "keys are escaped like texts", value: object{"é\"": int64(1)}, want: `{"\u00e9\"":1}`},
		"EmptyKey":   {reason: "an empty key is a key", value: object{"": ""}, want: `{"":""}`},
		"NestedInList": {
			reason: "keys of different objects are sorted separately",
			value:  list{object{"a": object{"b": nil}, "c": nil}, object{"d": nil}},
			want:   `[{"a":{"b":null},"c":null},{"d":null}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := asciijson.Marshal(tc.value)
			if err != nil {
				t.Fatalf("%s\ncannot marshal: %v", tc.reason, err)
			}
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
			if size, err := asciijson.EncodedSize(tc.value); size != len(tc.want) || err != nil {
				t.Errorf("measuring: got %d, want %d; error %v", size, len(tc.want), err)
			}
			appended, err := asciijson.AppendValue([]byte("x="), tc.value)
			if delta := cmp.Diff("x="+tc.want, string(appended)); delta != "" || err != nil {
				t.Errorf("appending: got error %v; -want, +got:\n%s", err, delta)
			}
		})
	}
}

// TestMarshalHugeThenSmall shows that a text above the size that is kept for reuse does not affect later texts.
func TestMarshalHugeThenSmall(t *testing.T) {
	huge := strings.Repeat("x", 100<<10)
	for range 3 {
		text, err := asciijson.Marshal(object{"a": huge})
		if delta := cmp.Diff(`{"a":"`+huge+`"}`, text); delta != "" || err != nil {
			t.Fatalf("got error %v; -want, +got:\n%s", err, delta)
		}
		text, err = asciijson.Marshal(object{"b": "y"})
		if delta := cmp.Diff(`{"b":"y"}`, text); delta != "" || err != nil {
			t.Fatalf("got error %v; -want, +got:\n%s", err, delta)
		}
	}
}

func TestCut(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		limit        int
		want         string
	}{
		"Short":    {"a short text is not cut", "abc", 30, "abc"},
		"Fits":     {"a text of exactly the limit is not cut", "abcdefghij", 10, "abcdefghij"},
		"Long":     {"the beginning of a long text is kept", "abcdefghijk", 10, "abcdefghij…"},
		"Escaped":  {"escaped characters count by their escaped size", "a\n\u0001üb", 15, "a\n\u0001ü…"},
		"Pair":     {"a surrogate pair is never cut in two", "a😀b", 12, "a…"},
		"Broken":   {"invalid UTF-8 before the cut is removed", "a\xffb" + strings.Repeat("c", 20), 10, "abcc…"},
		"Nothing":  {"a limit of zero leaves the ellipsis only", "abc", 0, "…"},
		"NoneOfIt": {"an empty text is not cut", "", 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := asciijson.CutText(tc.text, tc.limit)
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if size := len(asciijson.AppendString(nil, strings.TrimSuffix(got, "…"))) - len(`""`); size > tc.limit {
				t.Errorf("%s\nit takes %d bytes of %d", tc.reason, size, tc.limit)
			}
		})
	}
}

func ExampleMarshal() {
	text, err := asciijson.Marshal(map[string]any{
		"spec":     map[string]any{"title": "<Ünïcode> & Co.", "replicas": int64(3), "ratio": 1.0},
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
	})
	fmt.Println(text, err)
	// Output:
	// {"metadata":{"labels":{"app":"web"}},"spec":{"ratio":1.0,"replicas":3,"title":"<\u00dcn\u00efcode> & Co."}} <nil>
}

func TestWrites(t *testing.T) {
	value := map[string]any{"b": []any{1.0, nil}, "a": "ü"}
	text, err := asciijson.Marshal(value)
	if err != nil || !asciijson.IsEncodingOf(text, value) {
		t.Errorf("%s must count as the text of its value; error %v", text, err)
	}
	for _, other := range []string{"", text + " ", text[1:], `{"a":"ü","b":[1.0,null]}`} {
		if asciijson.IsEncodingOf(other, value) {
			t.Errorf("%s must not count as the text of the value", other)
		}
	}
	if asciijson.IsEncodingOf("", func() {}) {
		t.Error("a value that is not JSON must not have a text")
	}
}
