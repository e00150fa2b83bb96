package devcluster

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// ServeHTTP authenticates and answers one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() { h.reportPanic(recover(), w, r) }()
	// Authentication comes first, so that unauthenticated requests learn nothing about the cluster.
	user, err := h.authenticateRequest(r)
	if err != nil {
		writeError(w, err)
		return
	}
	// The limit also protects the translation of protobuf and YAML below.
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	// Impersonation changes the user name only, because every user has all permissions.
	if as := r.Header.Get("Impersonate-User"); as != "" {
		user = as
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			r.Header.Del(name) // every user has all permissions
		}
	}
	h.log.V(1).Info("A request", "method", r.Method, "url", r.URL.String(), "agent", r.UserAgent())
	if h.recorder != nil {
		// An unreadable body is reported below.
		if request, _, err := h.memory.ReadRequest(r); err == nil {
			h.recorder.recordRequest(request, user, r.UserAgent())
		}
	}
	if !h.serveDocument(w, r) {
		h.serveResource(w, withUser(r, user), user)
	}
}

// reportPanic logs a panic, which is a bug of this package or of memapi, and answers the request with an error. Other
// requests continue.
func (h *handler) reportPanic(problem any, w http.ResponseWriter, r *http.Request) {
	// ErrAbortHandler is the documented way to end a request without an answer.
	if err, ok := problem.(error); problem == nil || ok && errors.Is(err, http.ErrAbortHandler) {
		return
	}
	h.log.Error(fmt.Errorf("panic: %v", problem), "Failed to serve a request", "method", r.Method, "path", r.URL.Path,
		"stack", string(debug.Stack()))
	writeError(w, apierrors.NewInternalError(errors.New("the development cluster failed to serve the request")))
}

// serveResource serves a request for objects after translating it to JSON.
func (h *handler) serveResource(w http.ResponseWriter, r *http.Request, user string) {
	if err := translateBody(r); err != nil {
		writeError(w, err)
		return
	}
	// Proxy paths have more segments than paths of objects, so the server in memory cannot parse them.
	if isProxy(r.URL.Path) {
		writeError(w, notImplemented("the development cluster runs no containers: it does not serve proxies"))
		return
	}
	request, _, err := h.memory.ReadRequest(r)
	if err != nil {
		writeError(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	// The format is negotiated before the request runs: a write must not take effect if its answer cannot be sent.
	form, err := negotiateFormat(r.Header.Values("Accept"), request.Resource)
	if err != nil {
		writeError(w, err)
		return
	}
	// Reviews and tokens are not stored, so they are answered before the server in memory is asked.
	if answer, ok, err := h.serveVirtual(request, user); ok {
		writeAnswer(w, form, answer, err)
		return
	}
	// The remaining requests are for the server in memory. It refuses parameters that it does not support, so these are
	// removed.
	query := r.URL.Query()
	form.includeObject = query.Get("includeObject")
	if isWrite[request.Verb] && query.Get("fieldValidation") == "" {
		query.Set("fieldValidation", metav1.FieldValidationWarn) // the default of the real server
	}
	for name := range query {
		if !memapi.Supports(request.Verb, name) {
			query.Del(name) // the real server ignores it, too
		}
	}
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Accept", form.accept)
	response, err := h.memory.RoundTrip(r)
	if err != nil {
		writeError(w, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	// The server in memory names the unsupported feature; clients expect an error that the real server returns.
	if response.StatusCode == http.StatusNotImplemented {
		writeError(w, absentError(request, query.Has("resourceVersionMatch")))
		return
	}
	h.translateAnswer(w, response, form, request)
}

// isWrite contains the verbs of requests with an object in their body.
var isWrite = map[string]bool{"create": true, "update": true, "patch": true}

// absentError returns the error for a request that the server in memory does not support: a list of a former state,
// which the real server discards after some time, or a path that is not served.
func absentError(request memapi.Request, former bool) error {
	if former {
		return apierrors.NewResourceExpired("The provided resource version is too old: no former state is kept.")
	}
	return apierrors.NewNotFound(schema.GroupResource{
		Group: request.Resource.Group, Resource: request.Resource.Plural,
	}, request.Name)
}
