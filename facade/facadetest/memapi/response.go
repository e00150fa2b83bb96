package memapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newDocumentResponse returns a response with the document as JSON.
func newDocumentResponse(r *http.Request, code int, document any) *http.Response {
	data, err := json.Marshal(document)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(err.Error())
	}
	return newResponse(r, code, io.NopCloser(bytes.NewReader(data)), int64(len(data)))
}

// newResponse returns a response with a body that is already encoded. A length of -1 means that the length is unknown,
// as for a watch.
func newResponse(r *http.Request, code int, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: length,
	}
}

// newErrorResponse returns an error as a response with a Status object. An error without an API status becomes an
// internal server error.
func newErrorResponse(r *http.Request, err error) *http.Response {
	var known apierrors.APIStatus = internalError(err)
	_ = errors.As(err, &known)
	status := known.Status()
	// Clients decode the answer by its kind, which errors do not have.
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return newDocumentResponse(r, int(status.Code), status)
}

// NewRefusal returns an API error with the HTTP code and the reason that belongs to it, for hooks. Fields, if given,
// are listed as invalid in its details, as in a rejection of an invalid object.
func NewRefusal(code int, fields ...string) *apierrors.StatusError {
	err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", http.StatusText(code), 0, false)
	// Replace the generic message, which describes an unexpected answer of a server.
	err.ErrStatus.Message, err.ErrStatus.Details = http.StatusText(code), nil
	for _, field := range fields {
		if err.ErrStatus.Details == nil {
			err.ErrStatus.Details = &metav1.StatusDetails{}
		}
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
			metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field})
	}
	return err
}

// newStatusError returns an API error with an HTTP code and a reason, which may be empty.
func newStatusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// internalError returns the error that the real server uses for failures without a more specific reason.
func internalError(err error) *apierrors.StatusError {
	return newStatusError(http.StatusInternalServerError, "", err.Error())
}

// notServed returns the error for a path that does not belong to a resource. Its text must equal that of the real
// server.
func notServed() error {
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, false,
	)
}

// notFound returns the error for an object that does not exist.
func notFound(t target) error { return apierrors.NewNotFound(t.qualifiedName(), t.name) }

// deletionStatus returns the Status object with which a completed deletion is answered.
func deletionStatus(t target, uid any) map[string]any {
	details := map[string]any{"name": t.name, "kind": t.Plural}
	if t.Group != "" {
		details["group"] = t.Group
	}
	if uid != nil {
		details["uid"] = uid
	}
	return map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success", "details": details,
	}
}

// nonResourceSegments lists the first segments of paths of the real server that are not about objects.
var nonResourceSegments = []string{"healthz", "livez", "readyz", "metrics", "logs", "openapi", ".well-known", "openid"}

// missingPathError returns the error for a path that is not served. It distinguishes features that the real server has
// from paths that it does not serve either.
func (s *Server) missingPathError(t target, parts []string) error {
	d := s.schemas[t.groupResource()]
	own := t.Plural != "" && isKubernetesResource(t)
	switch {
	case t.Plural == "" && slices.Contains(nonResourceSegments, parts[0]) && len(parts) < 4:
		return unsupportedError("the path /%s", strings.Join(parts, "/"))
	case t.Kind == "" && own:
		return notInstalled(t)
	case t.Kind == "" || t.subresource == "" || t.subresource == "status":
		return notServed()
	case d != nil:
		return notFound(t) // like the real server, with the object's name even if the object exists
	case !t.Plain && !own:
		return notServed() // the real server does not serve it either
	default:
		return unsupportedError("the subresource %s of %s", t.subresource, t.Plural)
	}
}

// isKubernetesResource reports whether the resource is one of Kubernetes itself, installed here or not.
func isKubernetesResource(t target) bool {
	for kind := range builtInScheme().KnownTypes(t.groupVersion()) {
		// The plural is guessed from the kind, as the scheme only knows kinds.
		plural, _ := meta.UnsafeGuessKindToResource(t.groupVersion().WithKind(kind))
		if plural.Resource == t.Plural {
			return true
		}
	}
	return false
}

// notInstalled returns a "not found" error, like that for any other resource that is not served, with a message that
// names the remedy.
func notInstalled(t target) error {
	refused := apierrors.NewNotFound(schema.GroupResource{Group: t.Group, Resource: t.Plural}, t.name)
	refused.ErrStatus.Message = "the API server in memory does not serve " + t.Plural + " of " +
		t.groupVersion().String() + ": install them with Server.Install"
	refused.ErrStatus.Details = nil
	return refused
}
