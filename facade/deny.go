package kopf

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deny returns an error that rejects an admission request with this code and text; %w wraps errors. Code zero is 500,
// less than 400 becomes 400. Elsewhere it is [Permanent]. Kopf: AdmissionError.
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

// Permanent returns true, as in Kopf. The engine recognizes the error by this method.
func (e *denial) Permanent() bool { return true }

// Status is the answer of API servers to the client.
func (e *denial) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Message: e.Error(), Code: e.code}
}
