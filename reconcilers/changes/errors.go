package changes

// BlockedError says that an object cannot be handled until somebody changes it: its memory is malformed.
type BlockedError struct{ Err error }

// Error names what is malformed.
func (e *BlockedError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *BlockedError) Unwrap() error { return e.Err }
