package patching

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The classes of refusals, for errors.Is. Errors also wrap the API server's own error, for errors.As and the checks of
// apimachinery.
var (
	// ErrConflict means that the object has changed since its body was read. Read it again and apply the remaining
	// patch of the result, or use [PatchWriter.ApplyRetrying].
	ErrConflict = errors.New("the object has changed meanwhile")
	// ErrReplaced means that the object was deleted, and that another one of the same name was created. The patch is
	// obsolete.
	ErrReplaced = errors.New("the object was replaced by another one of the same name")
	// ErrRefused means that the content was refused. The same patch will be refused again, so it must be changed.
	ErrRefused = errors.New("the API server refused the patch")
)

// wrapFailure wraps the error of a request with the action, the object, and the class of the error, if any.
func wrapFailure(err error, r request, object string) error {
	if class := classifyError(err); class != nil {
		return fmt.Errorf("%s %s: %w: %w", r.describeAction(), object, class, err)
	}
	return fmt.Errorf("%s %s: %w", r.describeAction(), object, err)
}

// classifyError returns the class of an error, and nil if it does not have one.
func classifyError(err error) error {
	switch {
	case apierrors.IsConflict(err):
		return ErrConflict
	case IsTooLarge(err):
		return ErrRefused
	case !apierrors.IsInvalid(err):
		return nil
	// The API server reports a different uid in the patch as an invalid field: the uid is immutable.
	case slices.ContainsFunc(statusCauses(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }):
		return ErrReplaced
	default:
		return ErrRefused
	}
}

// statusCauses returns the causes that the API server has listed in its error.
func statusCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// unclassifiedError returns the API server's error without its class, so that the caller can wrap it with another
// class.
func unclassifiedError(err error) error {
	var answer *apierrors.StatusError
	if errors.As(err, &answer) {
		return answer
	}
	return err
}

// IsTooLarge reports whether the object or the patch exceeds a limit of the API server or of its database. This is a
// 413, or a 500 with the message of etcd or of its client. The same patch will exceed it again. A database that is full
// or overloaded answers with other messages, and can recover.
func IsTooLarge(err error) bool {
	if err == nil || apierrors.IsRequestEntityTooLargeError(err) {
		return err != nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		return false
	}
	// The texts are those of etcd's server and of the gRPC client in the API server.
	text := err.Error()
	return strings.Contains(text, "request is too large") ||
		strings.Contains(text, "ResourceExhausted") && strings.Contains(text, "larger than max")
}

// IsContentRefused reports whether a write failed because of its content or of a transformation function. The same
// write would fail again, and only the author of the content can correct it.
func IsContentRefused(err error) bool {
	var transform *TransformError
	switch {
	// A 404 means that there is no /status subresource, which does not depend on the content.
	case err == nil, apierrors.IsNotFound(err):
		return false
	default:
		return errors.Is(err, ErrRefused) || errors.As(err, &transform) || apierrors.IsBadRequest(err)
	}
}

// isLasting reports whether the server has answered and would give the same answer again. This excludes failed
// connections, overload, expired credentials and conflicts.
func isLasting(err error) bool {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrRefused):
		return true
	case !errors.As(err, &status):
		return false
	}
	code := int(status.Status().Code)
	switch code {
	// These 4xx codes are temporary.
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500 && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrReplaced)
	}
}

// IsHopeless reports whether the same write would fail again, so that retries are useless.
func IsHopeless(err error) bool {
	var transform *TransformError
	return errors.As(err, &transform) || errors.Is(err, ErrReplaced) || errors.Is(err, ErrRefused) || isLasting(err)
}
