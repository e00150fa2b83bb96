package patching_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// TestAddResult shows how the result of a handler is added to a patch.
func TestAddResult(t *testing.T) {
	type host struct {
		Name string `json:"name"`
		Port int    `json:"port"`
	}
	cases := map[string]struct {
		reason string
		patch  map[string]any
		value  any
		err    string
		want   map[string]any
	}{
		"NotJSON": {
			reason: "A value that cannot be encoded is an error with the handler id, and not added.",
			value:  map[string]any{"ch": make(chan int)},
			err:    `"fn/spec.field"`,
		},
		"NotANumber": {
			reason: "A value that contains NaN is an error.",
			value:  []any{math.NaN()},
			err:    `"fn/spec.field"`,
		},
		"Infinite": {
			reason: "A value that contains infinity is an error.",
			value:  []any{math.Inf(1)},
			err:    `"fn/spec.field"`,
		},
		"NilMapping": {reason: "A nil mapping is null and adds nothing.", value: map[string]any(nil)},
		"NilList":    {reason: "A nil list is null and adds nothing.", value: []any(nil)},
		"OverNilMapping": {
			reason: "A result over a nil mapping is added.",
			patch:  map[string]any{"status": map[string]any{"fn/spec.field": map[string]any(nil)}},
			value:  map[string]any{"a": "A"},
			want:   map[string]any{"status": map[string]any{"fn/spec.field": map[string]any{"a": "A"}}},
		},
		"Nil": {
			reason: "A nil result adds nothing, not even an empty status.",
			value:  nil,
		},
		"NilPointer": {
			reason: "A nil pointer is null and adds nothing.",
			value:  (*host)(nil),
		},
		"Struct": {
			reason: "A Go value that encodes to a mapping is added as one, with integers kept.",
			value:  host{Name: "db", Port: 5432},
			want: map[string]any{
				"status": map[string]any{"fn/spec.field": map[string]any{"name": "db", "port": int64(5432)}},
			},
		},
		"MergedShallowly": {
			reason: "A mapping is merged with the previous one by key, but not deeper.",
			patch: map[string]any{
				"status": map[string]any{"fn/spec.field": map[string]any{"a": map[string]any{"x": int64(1)}, "b": "B"}},
			},
			value: map[string]any{"a": map[string]any{"y": int64(2)}},
			want: map[string]any{
				"status": map[string]any{"fn/spec.field": map[string]any{"a": map[string]any{"y": int64(2)}, "b": "B"}},
			},
		},
		"OverRemoval": {
			reason: "A result replaces a removal.",
			patch:  map[string]any{"status": map[string]any{"fn/spec.field": nil}},
			value:  map[string]any{},
			want:   map[string]any{"status": map[string]any{"fn/spec.field": map[string]any{}}},
		},
		// Deviation D-result-place.
		"OverStatusRemoval": {
			reason: "A result replaces the removal of the whole status.",
			patch:  map[string]any{"status": nil},
			value:  false,
			want:   map[string]any{"status": map[string]any{"fn/spec.field": false}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := patching.Patch{Merge: tc.patch}
			err := p.AddResult("fn/spec.field", tc.value)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nwant an error with %s, got %v", tc.reason, tc.err, err)
				}
			} else if err != nil {
				t.Errorf("%s\nunexpected error: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, p.Merge); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSetIn shows how a value is set at a path of a patch.
func TestSetIn(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  map[string]any
		path   []string
		value  any
		want   map[string]any
	}{
		"Root": {reason: "An empty path sets nothing.", path: nil, value: "x", want: nil},
		"New": {
			reason: "Missing mappings on the path are created.", path: []string{"a", "b/c"}, value: "x",
			want: map[string]any{"a": map[string]any{"b/c": "x"}},
		},
		"Removal": {
			reason: "A null is kept, as it removes the key.",
			path:   []string{"a"}, value: nil, want: map[string]any{"a": nil},
		},
		"OverNull": {
			reason: "A value inside a removed mapping replaces the removal.",
			patch:  map[string]any{"a": nil}, path: []string{"a", "b"},
			value: int64(1), want: map[string]any{"a": map[string]any{"b": int64(1)}},
		},
		"OverNilMapping": {
			reason: "A value inside a nil mapping replaces it.", patch: map[string]any{"a": map[string]any(nil)},
			path: []string{"a", "b"}, value: "x", want: map[string]any{"a": map[string]any{"b": "x"}},
		},
		"GoValues": {
			reason: "Typed maps become mappings that can be merged.", path: []string{"labels"},
			value: map[string]string{"x": "y"}, want: map[string]any{"labels": map[string]any{"x": "y"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := patching.Patch{Merge: tc.patch}
			p.SetIn(tc.path, tc.value)
			if diff := cmp.Diff(tc.want, p.Merge); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPatchOwnsItsMappings shows that a patch copies its values, and that a clone is independent.
func TestPatchOwnsItsMappings(t *testing.T) {
	mine := map[string]any{"a": int64(1)}
	var p patching.Patch
	p.SetIn([]string{"spec"}, mine)
	p.SetIn([]string{"spec", "b"}, int64(2))
	if err := p.AddResult("fn", mine); err != nil {
		t.Fatal(err)
	}
	clone := p.Clone()
	if diff := cmp.Diff(p, clone); diff != "" {
		t.Errorf("the clone differs: -want, +got:\n%s", diff)
	}
	clone.SetIn([]string{"status", "fn", "c"}, int64(3))
	clone.Transforms = append(clone.Transforms, patching.BlockDeletion("x"))

	if diff := cmp.Diff(map[string]any{"a": int64(1)}, mine); diff != "" {
		t.Errorf("the caller's mapping was modified: -want, +got:\n%s", diff)
	}
	want := map[string]any{
		"spec":   map[string]any{"a": int64(1), "b": int64(2)},
		"status": map[string]any{"fn": map[string]any{"a": int64(1)}},
	}
	if diff := cmp.Diff(want, p.Merge); diff != "" || len(p.Transforms) != 0 {
		t.Errorf("changes of the clone modified the original: -want, +got:\n%s", diff)
	}
}

// TestEmpty shows which patches are empty.
func TestEmpty(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  patching.Patch
		want   bool
	}{
		"Zero": {reason: "The zero value is an empty patch.", want: true},
		"EmptyMap": {
			reason: "A merge patch without keys is empty.", patch: patching.Patch{Merge: map[string]any{}},
			want: true,
		},
		"Removal": {reason: "A removal is a change.", patch: patching.Patch{Merge: map[string]any{"a": nil}}},
		"Transform": {
			reason: "A patch with a function is not empty, even if the function changes nothing.",
			patch:  patching.Patch{Transforms: []patching.Transform{patching.AllowDeletion("x")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.patch.IsEmpty(); got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// TestApplyTo shows that a patch is applied as its merge patch first, and then its functions in their order.
func TestApplyTo(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]struct {
		reason string
		patch  patching.Patch
		want   map[string]any
		err    error
		fails  bool
	}{
		"TransformFails": {
			reason: "The error of a function is returned.",
			patch:  patching.Patch{Transforms: []patching.Transform{func(map[string]any) error { return broken }}},
			err:    broken, fails: true,
		},
		"TransformLeavesGarbage": {
			reason: "A value of a function that cannot be encoded is an error.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"f"}, func() {})}},
			fails:  true,
		},
		"MergeThenTransforms": {
			reason: "The functions get the merged body, with the changes of the functions before.",
			patch: patching.Patch{
				Merge: map[string]any{"spec": map[string]any{"l": []any{int64(7)}, "gone": nil}},
				Transforms: []patching.Transform{
					appendItem([]string{"spec", "l"}, int64(8)), appendItem([]string{"spec", "l"}, int64(9)),
				},
			},
			want: map[string]any{"spec": map[string]any{"l": []any{int64(7), int64(8), int64(9)}}},
		},
		"GoValues": {
			reason: "Go values are converted to their JSON.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec"}, map[string]int{"n": 1})}},
			want:   map[string]any{"spec": map[string]any{"n": int64(1)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{"spec": map[string]any{"l": []any{int64(1)}, "gone": true}}
			before := encode(body)
			got, err := tc.patch.ApplyTo(body)
			if (err != nil) != tc.fails || (tc.err != nil && !errors.Is(err, tc.err)) {
				t.Errorf("%s\nunexpected error: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if string(before) != string(encode(body)) {
				t.Errorf("%s\nthe body was modified: %s", tc.reason, encode(body))
			}
		})
	}
}

// TestTreesAreTakenAsTheyAre shows that values that are JSON already are not encoded again.
func TestTreesAreTakenAsTheyAre(t *testing.T) {
	var p patching.Patch
	path := []string{"a"}
	p.SetIn(path, "x")
	if got := testing.AllocsPerRun(100, func() { p.SetIn(path, "x") }); got != 0 {
		t.Errorf("got %v allocations, want none for a value that is already JSON", got)
	}
}
