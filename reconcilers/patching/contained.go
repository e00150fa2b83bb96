package patching

import (
	"errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// A TransformError is that of a user's function that does not fit the object as it is when it is written.
type TransformError struct{ err error }

// Error tells what the function said.
func (e *TransformError) Error() string { return e.err.Error() }

// Unwrap gives that.
func (e *TransformError) Unwrap() error { return e.err }

// Contained makes the errors and panics of users' functions TransformErrors: when a patch is written, they run out of
// their handlers' reach.
func Contained(transforms []Transform) []Transform {
	out := make([]Transform, len(transforms))
	for i, transform := range transforms {
		out[i] = func(body map[string]any) error {
			if err := panics.Contain(func() error { return transform(body) }); err != nil {
				return &TransformError{panics.Tame(err)}
			}
			return nil
		}
	}
	return out
}

// Hopeless tells whether the same write would fail again: for its content, or for good.
func Hopeless(err error) bool {
	var transform *TransformError
	return errors.As(err, &transform) || errors.Is(err, ErrReplaced) || errors.Is(err, ErrRefused) || lasting(err)
}
