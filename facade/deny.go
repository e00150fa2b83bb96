package kopf

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deny makes the error of a handler of admission that denies a request with this text, which wraps others by %w, and
// with this HTTP code, such as http.StatusForbidden; zero is 500. API servers make 400 of a code below that.
//
// Of several handlers that deny a request, the first with such an error is heard, or one with any error of the API, see
// apierrors.APIStatus; then the first that is [Permanent], then one that is [Temporary], and then all others. Kopf:
// AdmissionError.
//
// In handlers of other verbs, it is a [Permanent] error.
func Deny(code int, format string, args ...any) error {
	if code == 0 {
		code = http.StatusInternalServerError
	}
	return &denial{fmt.Errorf(format, args...), int32(code)}
}

type denial struct {
	err  error
	code int32
}

func (e *denial) Error() string { return e.err.Error() }

func (e *denial) Unwrap() error { return e.err }

// Permanent is true, as in Kopf; the engine knows the error by this method.
func (e *denial) Permanent() bool { return true }

// Status is what API servers tell of it.
func (e *denial) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Message: e.Error(), Code: e.code}
}
