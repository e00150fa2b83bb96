package devcluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
