package children

import (
	"fmt"
	"strings"
)

// immutableFieldError reports immutable fields of a child. The API server's message repeats their whole values, which
// makes log lines unreadable, so only the names of the fields are shown.
type immutableFieldError struct {
	fields []string
	err    error
}

// asImmutableFieldError returns a immutableFieldError if the API server has refused a request only because of immutable
// fields, and nil otherwise.
func asImmutableFieldError(err error) error {
	var fields []string
	for _, cause := range causesOf(err) {
		if cause.Field == uidField {
			return nil // the name belongs to another object now
		}
		// The API server has no reason code for immutable fields, so the text of its validation message is matched.
		if !strings.Contains(cause.Message, "immutable") && !strings.Contains(cause.Message, "may not change") {
			return nil
		}
		fields = append(fields, cause.Field)
	}
	if len(fields) == 0 {
		return nil
	}
	return &immutableFieldError{fields, err}
}

// Error names the fields and the two possible remedies.
func (e *immutableFieldError) Error() string {
	return fmt.Sprintf("it exists, and its %s cannot be changed: declare it as it is, or delete it to have it created "+
		"again", strings.Join(e.fields, ", "))
}

// Unwrap returns the response of the API server.
func (e *immutableFieldError) Unwrap() error { return e.err }
