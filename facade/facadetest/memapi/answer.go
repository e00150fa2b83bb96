package memapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func respond(r *http.Request, code int, document any) *http.Response {
	data, err := json.Marshal(document)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(err.Error())
	}
	return answer(r, code, io.NopCloser(bytes.NewReader(data)), int64(len(data)))
}

func answer(r *http.Request, code int, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: length,
	}
}

// refuse answers with an error of the API.
func refuse(r *http.Request, err error) *http.Response {
	var known apierrors.APIStatus
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return respond(r, int(status.Code), status)
}

// Refusal is an answer of the API with this code, and with the reason that goes with it, for hooks. It blames the
// fields, if any are given, as refusals of invalid objects do.
func Refusal(code int, fields ...string) *apierrors.StatusError {
	err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", http.StatusText(code), 0, false)
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

// internal is what the real server gives when it has nothing better to say.
func internal(err error) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// notServed is what a path without a resource gets.
func notServed() error {
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, false,
	)
}

func notFound(t target) error { return apierrors.NewNotFound(t.qualified(), t.name) }

// success is the answer to a deletion that is done.
func success(t target, uid any) map[string]any {
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
