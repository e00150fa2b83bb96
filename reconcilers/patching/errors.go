package patching

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The classes of refusals, for errors.Is. The API server's own error is wrapped as well, for errors.As and the checks
// of apimachinery.
var (
	// ErrConflict: the object has changed since its body was read. Read it again and apply Result.Remaining, or let
	// Writer.ApplyRetrying do that.
	ErrConflict = errors.New("the object has changed meanwhile")
	// ErrReplaced: the object was deleted, and another of the same name created. The patch is obsolete.
	ErrReplaced = errors.New("the object was replaced by another one of the same name")
	// ErrRefused: the content was refused. The same patch will be refused again: it is the patch that must change.
	ErrRefused = errors.New("the API server refused the patch")
)

// failure wraps an error of a request with the action, the object, and the class of the error if it has one.
func failure(err error, r request, object string) error {
	if class := classify(err); class != nil {
		return fmt.Errorf("%s %s: %w: %w", r.action(), object, class, err)
	}
	return fmt.Errorf("%s %s: %w", r.action(), object, err)
}

func classify(err error) error {
	switch {
	case apierrors.IsConflict(err):
		return ErrConflict
	case TooLarge(err):
		return ErrRefused
	case !apierrors.IsInvalid(err):
		return nil
	case hasField(causesOf(err), "metadata.uid"):
		return ErrReplaced
	default:
		return ErrRefused
	}
}

func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// answerOf gives the API server's error without its class, so that the caller can wrap it with another one.
func answerOf(err error) error {
	var answer *apierrors.StatusError
	if errors.As(err, &answer) {
		return answer
	}
	return err
}

// hasField reports whether a cause names this field.
func hasField(causes []metav1.StatusCause, field string) bool {
	for _, cause := range causes {
		if cause.Field == field {
			return true
		}
	}
	return false
}

// TooLarge reports whether the object or the patch exceeds a limit of the API server or of its database: a 413, or a
// 500 with the words of etcd or of the client that talks to it. The same patch will exceed it again. A database that
// is full, or is asked too often, answers with other words: that can pass.
func TooLarge(err error) bool {
	if err == nil || apierrors.IsRequestEntityTooLargeError(err) {
		return err != nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "request is too large") ||
		strings.Contains(text, "ResourceExhausted") && strings.Contains(text, "larger than max")
}

// ContentRefused reports whether the content of a write is at fault, or a function that makes it: the same write would
// fail again, and only the author of the content can mend it.
func ContentRefused(err error) bool {
	var transform *TransformError
	switch {
	case err == nil, apierrors.IsNotFound(err): // there is no /status: no content would be accepted
		return false
	default:
		return errors.Is(err, ErrRefused) || errors.As(err, &transform) || apierrors.IsBadRequest(err)
	}
}

// lasting tells whether the server answered, and would answer the same again. Failed connections, overload, expired
// credentials and conflicts are not lasting.
func lasting(err error) bool {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrRefused):
		return true
	case !errors.As(err, &status):
		return false
	}
	code := int(status.Status().Code)
	switch code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500 && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrReplaced)
	}
}

// Hopeless tells whether the same write would fail again, so that retries are useless.
func Hopeless(err error) bool {
	var transform *TransformError
	return errors.As(err, &transform) || errors.Is(err, ErrReplaced) || errors.Is(err, ErrRefused) || lasting(err)
}
