package devcluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// maxBodyBytes is the maximum length of a request's body, as in the real server.
const maxBodyBytes = 3 << 20

// historyLimit is the number of changes that the server keeps for watches that resume.
const historyLimit = 1000

var errForeignHost = errors.New("the development cluster answers requests to loopback host names only")

// handler serves the API over HTTP. The server in memory only supports JSON: the handler translates other formats of
// bodies and answers, and serves paths that are not for objects.
type handler struct {
	memory *memapi.Server
	port   string
	tokens *tokens
	log    logr.Logger

	openAPI  publisher
	recorder *recorder
}

// newHandler returns a handler for a listener's address. Requests must have the port of this address in their Host
// header.
func newHandler(memory *memapi.Server, address string, log logr.Logger) (*handler, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the listener: %w", err)
	}
	return &handler{memory: memory, port: port, tokens: newTokens(), log: log}, nil
}

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

// readDocument reads a document from the server in memory, such as a discovery document.
func (h *handler) readDocument(r *http.Request, path string, into any) error {
	// The host of the URL is arbitrary: the request does not leave the process.
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://memory"+path, nil)
	if err != nil {
		return err
	}
	response, err := h.memory.RoundTrip(inner)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// translateBody converts the body of a request to JSON.
func translateBody(r *http.Request) error {
	data, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", tooLarge.Limit))
	case err != nil:
		return apierrors.NewBadRequest(err.Error())
	}
	form, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if data, err = toJSON(strings.TrimSpace(form), data); err != nil {
		return err
	}
	// Patches keep their content type, which selects the kind of patch.
	if form == protobufContentType || form == yamlContentType {
		r.Header.Set("Content-Type", jsonContentType)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return nil
}

// writeJSON writes a document as JSON.
func writeJSON(w http.ResponseWriter, code int, document any) {
	w.Header().Set("Content-Type", jsonContentType)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(document) // it fails if the client is gone
}

// writeError writes an error as a Status object.
func writeError(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	// Errors without a status are bugs or failures of this package.
	status := apierrors.NewInternalError(err).Status()
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writeJSON(w, int(status.Code), status)
}

// notImplemented returns the error for a feature that only the real server has.
func notImplemented(format string, arguments ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: fmt.Sprintf(format, arguments...),
	}}
}
