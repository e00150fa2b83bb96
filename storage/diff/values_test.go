package diff_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestEqual(t *testing.T) {
	tests := map[string]struct {
		reason string
		a, b   any
		want   bool
	}{
		"BooleanNumber": {reason: "a boolean is not a number (D-types)", a: true, b: int64(1)},
		"BooleanFloat":  {reason: "a boolean is not a number (D-types)", a: false, b: 0.0},
		"StringNumber":  {reason: "a text of digits is not a number", a: "1", b: int64(1)},
		"StringLiteral": {reason: "a number as text is not a string", a: "1", b: json.Number("1")},
		"NullAbsent": {reason: "a key with a null differs from a missing key",
			a: object{"x": nil}, b: object{}},
		"NullOtherKey": {reason: "the same number of other keys differs",
			a: object{"x": nil}, b: object{"y": nil}},
		"NullFalse":        {reason: "false differs from null", a: nil, b: false},
		"NullEmptyMapping": {reason: "an empty mapping differs from null", a: nil, b: object{}},
		"NilMapEmptyMapping": {reason: "a nil map is null, so it differs from an empty mapping",
			a: object(nil), b: object{}},
		"NilSliceEmptyList": {reason: "a nil slice is null, so it differs from an empty list",
			a: list(nil), b: list{}},
		"ListMapping": {reason: "an empty list differs from an empty mapping", a: list{}, b: object{}},
		"ListOrder":   {reason: "lists in another order differ", a: list{"a", "b"}, b: list{"b", "a"}},
		"ListLength":  {reason: "a longer list differs", a: list{"a"}, b: list{"a", nil}},
		"BeyondFloat": {
			reason: "2^53+1 differs from the float that it would be rounded to",
			a:      int64(1<<53 + 1), b: float64(1 << 53),
		},
		"MaxInteger": {reason: "2^63 as a float differs from the largest integer",
			a: int64(math.MaxInt64), b: float64(1 << 63)},
		"BelowAll": {
			reason: "2^63 as a float differs from the least integer, to which a conversion would turn it",
			a:      int64(math.MinInt64),
			b:      float64(1 << 63),
		},
		"NotANumberAndOne": {reason: "NaN differs from a number", a: math.NaN(), b: 1.5},
		"Infinity": {reason: "an infinite number differs from any integer",
			a: int64(math.MinInt64), b: math.Inf(-1)},
		"Fraction": {reason: "a fraction differs from an integer", a: int64(1), b: 1.5},
		"HugeLiterals": {
			reason: "numbers beyond floats are compared by their text",
			a:      json.Number("1e999"), b: json.Number("2e999"),
		},
		"UnknownTypes":   {reason: "other types of Go are compared as Go compares them", a: uint8(1), b: int64(1)},
		"NullNilMap":     {reason: "a nil map equals null", a: nil, b: object(nil), want: true},
		"NilMapNilSlice": {reason: "a nil slice equals a nil map", a: list(nil), b: object(nil), want: true},
		"IntegerFloat":   {reason: "an integer equals a float of the same value", a: int64(1), b: 1.0, want: true},
		"MinInteger": {
			reason: "-2^63 is exact as an integer and as a float",
			a:      int64(math.MinInt64), b: float64(math.MinInt64), want: true,
		},
		"NegativeZero": {reason: "-0.0 equals zero", a: int64(0), b: math.Copysign(0, -1), want: true},
		"GoIntegers":   {reason: "integers of different Go types are equal", a: 7, b: int32(7), want: true},
		"GoFloats":     {reason: "floats of different Go types are equal", a: float32(0.5), b: 0.5, want: true},
		"Literal": {
			reason: "a decimal number as text equals the integer", a: json.Number("1.0"), b: int64(1), want: true,
		},
		"IntegerLiteral": {
			reason: "a number as text equals the integer", a: json.Number("1"), b: int64(1), want: true,
		},
		"SameHugeLiterals": {
			reason: "huge numbers with the same text are equal",
			a:      json.Number("1e999"), b: json.Number("1e999"), want: true,
		},
		"NotANumber": {
			reason: "NaN equals itself, so a value with it settles", a: math.NaN(), b: math.NaN(), want: true,
		},
		"UnknownType": {
			reason: "other types of Go are compared by their contents", a: []string{"a"}, b: []string{"a"}, want: true,
		},
		"Nested": {
			reason: "values are compared at any depth",
			a:      object{"a": list{object{"b": int64(2), "c": nil}}},
			b:      object{"a": list{object{"b": 2.0, "c": nil}}},
			want:   true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := diff.Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("%s: Equal(%v, %v) = %v", tc.reason, tc.a, tc.b, got)
			}
			if got := diff.Equal(tc.b, tc.a); got != tc.want {
				t.Errorf("%s: not symmetric: Equal(%v, %v) = %v", tc.reason, tc.b, tc.a, got)
			}
		})
	}
}

func TestCopySharesNothing(t *testing.T) {
	tree := func() map[string]any {
		return map[string]any{
			"list": []any{map[string]any{"a": int64(1)}, nil, "x"}, "empty": map[string]any{}, "none": []any(nil),
			"odd": 7,
		}
	}
	original := tree()
	copied, ok := diff.DeepCopy(original).(map[string]any)
	if !ok {
		t.Fatal("the copy of a mapping must be a mapping")
	}
	want := tree()
	want["none"] = nil
	if d := cmp.Diff(want, copied); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	copied["list"].([]any)[0].(map[string]any)["a"] = "changed"
	copied["list"].([]any)[2] = "changed"
	copied["empty"].(map[string]any)["new"] = "changed"
	if d := cmp.Diff(tree(), original); d != "" {
		t.Errorf("a change of the copy changes the original: -want, +got:\n%s", d)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	before, after := map[string]any{"spec": map[string]any{"a": []any{"x"}}}, map[string]any{
		"spec": map[string]any{"a": []any{"y"}, "b": map[string]any{}},
	}
	original := diff.Compute(before, after)
	want := diff.Compute(before, after)
	cloned := original.Clone()
	if d := cmp.Diff(want, cloned); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	for i, item := range cloned {
		item.Path[0] = "changed"
		if list, ok := item.New.([]any); ok {
			list[0] = "changed"
		}
		if list, ok := item.Old.([]any); ok {
			list[0] = "changed"
		}
		cloned[i] = diff.Item{}
	}
	if d := cmp.Diff(want, original); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if got := diff.Diff(nil).Clone(); got != nil {
		t.Errorf("the clone of a nil diff must be nil, got %v", got)
	}
}
