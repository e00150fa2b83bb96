package declared

import (
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// classes are Kopf's, by what the functions of vectors raise.
var classes = map[string]string{
	"temporary": "TemporaryError", "permanent": "PermanentError", "arbitrary": "CustomError",
	"admission": "AdmissionError", "timeout": "HandlerTimeoutError", "retries": "HandlerRetriesError",
}

// raisedError is an error that a function raises. Its methods show its kind.
type raisedError struct{ class, message string }

func (e *raisedError) Error() string { return e.message }

type permanentError struct{ *raisedError }

func (*permanentError) Permanent() bool { return true }

type temporaryError struct {
	*raisedError
	delay time.Duration
}

func (e *temporaryError) RetryAfter() time.Duration { return e.delay }

// withoutDelay is the delay of a null: Go has no null durations.
const withoutDelay = -1

// Raise is the error that a function ends with by its behaviour; nil if it raises none.
func Raise(t testing.TB, behave vectors.Fields) error {
	t.Helper()
	if behave["raise"] == nil {
		return nil
	}
	class, ok := classes[behave.Text("raise", "")]
	if !ok {
		t.Fatalf("the harness does not know how to raise %v", behave["raise"])
	}
	err := &raisedError{class: class, message: behave.Text("message", "")}
	switch class {
	case "CustomError":
		return err
	case "TemporaryError":
		if behave["message"] == nil {
			err.message = "None" // so it is if Kopf's own class is raised with no arguments
		}
		delay := time.Minute
		if _, given := behave["delay"]; given {
			delay = withoutDelay
		}
		if given := Seconds(t, behave, "delay"); given != nil {
			delay = *given
		}
		return &temporaryError{err, delay}
	default:
		return &permanentError{err}
	}
}

// Class is the name of Kopf's class of an error that was raised; empty if it is another one.
func Class(err error) string {
	var permanent *permanentError
	var temporary *temporaryError
	var ordinary *raisedError
	switch {
	case errors.As(err, &permanent):
		return permanent.class
	case errors.As(err, &temporary):
		return temporary.class
	case errors.As(err, &ordinary):
		return ordinary.class
	default:
		return ""
	}
}
