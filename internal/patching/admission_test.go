package patching_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestAdmissionOps shows the JSON patch of an admission response, and the errors of patches that do not apply.
func TestAdmissionOps(t *testing.T) {
	type m = map[string]any
	cases := map[string]struct {
		reason string
		body   m
		patch  patching.Patch
		err    string
		want   m // nil: no operations
	}{
		"MappingOverScalar": {
			reason: "A mapping over a scalar is an error that names the place, as Kopf fails there, too.",
			body:   m{"spec": m{"n": int64(5)}}, patch: patching.Patch{Merge: m{"spec": m{"n": m{"a": int64(1)}}}},
			err: "spec.n is not a mapping",
		},
		"RemovalInsideNull": {
			reason: "A removal inside a value that is not a mapping is an error.",
			body:   m{"spec": nil}, patch: patching.Patch{Merge: m{"spec": m{"n": nil}}},
			err: "spec is not a mapping",
		},
		"FailedTransform": {
			reason: "A function that fails denies the request.",
			body:   m{"spec": m{"n": int64(5)}}, patch: patching.Patch{
				Transforms: []patching.Transform{set([]string{"spec", "n", "x"}, "y")},
			},
			err: "transforming",
		},
		"EmptyMappingOverScalar": {
			reason: "Nested empty mappings have no effect, whatever is at their place.",
			body:   m{"spec": m{"n": int64(5)}}, patch: patching.Patch{Merge: m{"spec": m{"n": m{"a": m{}}}}},
		},
		"EmptyParentsGo": {
			reason: "A parent that was already empty is removed, even if the key does not exist.",
			body:   m{"spec": m{"n": m{}}}, patch: patching.Patch{Merge: m{"spec": m{"n": m{"a": m{"b": nil}}}}},
			want: m{},
		},
		"RefilledParentStays": {
			reason: "A parent that is refilled in the same patch is kept.",
			body:   m{"spec": m{"n": m{"a": int64(1)}}}, patch: patching.Patch{
				Merge: m{"spec": m{"n": m{"a": nil, "b": int64(2)}}},
			},
			want: m{"spec": m{"n": m{"b": int64(2)}}},
		},
		"NilBody": {
			reason: "Without a body every key is added.",
			patch:  patching.Patch{Merge: m{"a/b~c": "x"}},
			want:   m{"a/b~c": "x"},
		},
		"LargeIntegers": {
			reason: "Integers beyond the precision of floats are kept, also in lists.",
			body:   m{"n": int64(9007199254740992), "l": []any{int64(9007199254740992)}},
			patch:  patching.Patch{Merge: m{"n": int64(9007199254740993), "l": []any{int64(9007199254740993)}}},
			want:   m{"n": int64(9007199254740993), "l": []any{int64(9007199254740993)}},
		},
		"ExplicitNull": {
			reason: "A null from a function is kept, as JSON patches can express it.",
			body:   m{"a": "x"}, patch: patching.Patch{
				Transforms: []patching.Transform{set([]string{"a"}, nil), set([]string{"b"}, nil)},
			},
			want: m{"a": nil, "b": nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := encode(orEmpty(tc.body))
			ops, err := patching.AdmissionOps(tc.body, tc.patch)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nunexpected error: %v", tc.reason, err)
			}
			if tc.want == nil {
				if len(ops) > 0 {
					t.Errorf("%s\nunexpected operations: %s", tc.reason, encode(ops))
				}
				return
			}
			got, err := applyOperations(decode(before).(m), encode(ops))
			if err != nil {
				t.Fatalf("%s\nthe operations do not apply: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzAdmissionOps checks that the operations for a changed body lead to exactly that body.
func FuzzAdmissionOps(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		before := randomMapping(r, 3)
		after := mutated(r, before)
		replace := func(body map[string]any) error {
			clear(body)
			for key, value := range after {
				body[key] = value
			}
			return nil
		}
		ops, err := patching.AdmissionOps(before, patching.Patch{Transforms: []patching.Transform{replace}})
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		got := any(before)
		if len(ops) > 0 {
			out, err := applyOperations(before, encode(ops))
			if err != nil {
				t.Fatalf("%s does not apply to %s: %v", encode(ops), encode(before), err)
			}
			got = out
		}
		if !diff.Equal(after, got) {
			t.Errorf(
				"before %s\noperations %s\n-want, +got:\n%s", encode(before), encode(ops), cmp.Diff(any(after), got),
			)
		}
	})
}
