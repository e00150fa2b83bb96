package children

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// fixedError is about fields that the API server does not let anybody change. Its answer shows the whole of their
// values, which helps nobody in a log.
type fixedError struct {
	fields []string
	err    error
}

// fixedIn tells whether an answer is only about such fields; nil if not.
func fixedIn(err error) error {
	var known apierrors.APIStatus
	if !errors.As(err, &known) || known.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range known.Status().Details.Causes {
		if cause.Field == uidField {
			return nil // it is another object
		}
		if !strings.Contains(cause.Message, "immutable") && !strings.Contains(cause.Message, "may not change") {
			return nil
		}
		fields = append(fields, cause.Field)
	}
	if len(fields) == 0 {
		return nil
	}
	return &fixedError{fields, err}
}

// Error says what to do.
func (e *fixedError) Error() string {
	return fmt.Sprintf("it exists, and its %s cannot be changed: declare it as it is, or delete it to have it created "+
		"again", strings.Join(e.fields, ", "))
}

// Unwrap gives the answer of the API server.
func (e *fixedError) Unwrap() error { return e.err }
