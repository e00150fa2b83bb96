package patching_test

import (
	"errors"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// evil panics with itself, and so do those who look into it.
type evil struct{}

func (e evil) Error() string { panic(e) }
func (e evil) Is(error) bool { panic(e) }
func (e evil) As(any) bool   { panic(e) }
func (e evil) Unwrap() error { panic(e) }

// When a patch is written, nobody recovers for the user: neither from what a function does, nor from what its error
// does.
func TestContainedFunctions(t *testing.T) {
	for want, transform := range map[string]patching.Transform{
		"panic: boo": func(map[string]any) error { panic("boo") },
		"a patching_test.evil whose text cannot be had, as its method panics": func(map[string]any) error {
			return evil{}
		},
		"panic: a patching_test.evil whose text cannot be had, as its method panics": func(map[string]any) error {
			panic(evil{})
		},
	} {
		patch := patching.Patch{Transforms: patching.Contained([]patching.Transform{transform})}
		_, err := patch.ApplyTo(map[string]any{})
		var own *patching.TransformError
		if err == nil || !errors.As(err, &own) || own.Error() != want || !patching.Hopeless(err) || errors.Is(
			err, patching.ErrConflict,
		) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
