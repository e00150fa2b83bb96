package changes

import "errors"

// BlockedError says that an object cannot be handled until somebody changes it: its memory is malformed, or it cannot
// be shown to a filter.
type BlockedError struct{ Err error }

// Error names what is malformed.
func (e *BlockedError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *BlockedError) Unwrap() error { return e.Err }

// unpresentable is an error of an object that cannot be shown to a user's function as it is.
type unpresentable interface{ Unpresentable() bool }

// filtering is the error of a filter. If the object does not even fit into the filter's type, no other try will help.
func filtering(err error) error {
	var bad unpresentable
	if errors.As(err, &bad) && bad.Unpresentable() {
		return &BlockedError{Err: err}
	}
	return err
}
