package patching_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// transformsOf returns the functions that a vector describes.
func transformsOf(t *testing.T, descriptions []any) []patching.Transform {
	t.Helper()
	var out []patching.Transform
	for _, description := range descriptions {
		d := vectors.Known(t, description, "fn", "path", "value", "finalizer")
		switch d.Text("fn", "") {
		case "block_deletion":
			out = append(out, patching.BlockDeletion(d.Text("finalizer", kopfFinalizer)))
		case "allow_deletion":
			out = append(out, patching.AllowDeletion(d.Text("finalizer", kopfFinalizer)))
		default:
			edit, err := vectors.Edit(d)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, edit)
		}
	}
	return out
}

func set(path []string, value any) patching.Transform { return edit("set", path, value) }

func appendItem(path []string, value any) patching.Transform { return edit("append", path, value) }

func edit(fn string, path []string, value any) patching.Transform {
	made, err := vectors.Edit(vectors.Fields{"fn": fn, "path": strings.Join(path, "."), "value": value})
	if err != nil {
		panic(err)
	}
	return made
}

func remove(path []string) patching.Transform { return edit("remove", path, nil) }

// panickingError panics with itself, and so do all functions that inspect it.
type panickingError struct{}

func (e panickingError) Error() string { panic(e) }
func (e panickingError) Is(error) bool { panic(e) }
func (e panickingError) As(any) bool   { panic(e) }
func (e panickingError) Unwrap() error { panic(e) }

// TestContainedFunctions shows that panics of a function, and of the methods of its error, become errors: nothing else
// recovers them during a write.
func TestContainedFunctions(t *testing.T) {
	const noText = "a patching_test.panickingError whose text cannot be had, as its method panics"
	for want, transform := range map[string]patching.Transform{
		"panic: boo":       func(map[string]any) error { panic("boo") },
		noText:             func(map[string]any) error { return panickingError{} },
		"panic: " + noText: func(map[string]any) error { panic(panickingError{}) },
	} {
		patch := patching.Patch{Transforms: patching.ContainPanics([]patching.Transform{transform})}
		_, err := patch.ApplyTo(map[string]any{})
		var own *patching.TransformError
		if err == nil || !errors.As(err, &own) || own.Error() != want || !patching.IsHopeless(err) || errors.Is(
			err, patching.ErrConflict,
		) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestFinalizersOfOddBodies shows that finalizers can be added to and removed from incomplete bodies.
func TestFinalizersOfOddBodies(t *testing.T) {
	finalizers := func(items ...any) map[string]any {
		return map[string]any{"metadata": map[string]any{"finalizers": items}}
	}
	cases := map[string]struct {
		reason    string
		body      map[string]any
		transform patching.Transform
		want      map[string]any
	}{
		"BlockWithoutMetadata": {
			reason: "A body without metadata gets metadata with the finalizer.",
			body:   map[string]any{}, transform: patching.BlockDeletion("own"), want: finalizers("own"),
		},
		"BlockTwice": {
			reason: "A finalizer is added once, even if the function runs again after a conflict.",
			body:   finalizers("own", "x"), transform: patching.BlockDeletion("own"), want: finalizers("own", "x"),
		},
		"BlockOverNull": {
			reason: "A null is replaced by a list with the finalizer.",
			body: map[string]any{
				"metadata": map[string]any{"finalizers": nil},
			}, transform: patching.BlockDeletion("own"), want: finalizers("own"),
		},
		"AllowWithoutMetadata": {
			reason: "A removal from a body without metadata has no effect.",
			body:   map[string]any{}, transform: patching.AllowDeletion("own"), want: map[string]any{},
		},
		"AllowAllOccurrences": {
			reason: "All occurrences of the finalizer are removed, as one would hold the object forever.",
			body:   finalizers("own", "x", "own"), transform: patching.AllowDeletion("own"), want: finalizers("x"),
		},
		"AllowTheOnlyOnes": {
			reason: "A list that becomes empty is removed.",
			body:   finalizers("own", "own"), transform: patching.AllowDeletion("own"), want: map[string]any{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := decode(encode(tc.body)).(map[string]any)
			if err := tc.transform(body); err != nil {
				t.Fatalf("%s\nunexpected error: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, body); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
