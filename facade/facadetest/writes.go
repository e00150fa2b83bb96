package facadetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Write is one request of the operator that is not a read.
type Write struct {
	// Verb is the Kubernetes verb: create, update, patch, delete, or apply.
	Verb string
	// Path is the path of the request, such as /api/v1/namespaces/default/configmaps/world/status.
	Path string
	// Body is the body of the request, in JSON.
	Body []byte
	// Code is the HTTP code of the response, such as 200 or 409; 0 without a response.
	Code int
	// At is the time when the request was sent.
	At time.Time

	moment moment
}

// String returns the write as one line, without its body and its time:
//
//	patch /api/v1/namespaces/default/configmaps/world: 200
func (w Write) String() string { return fmt.Sprintf("%s %s: %d", w.Verb, w.Path, w.Code) }

// operatorStateResources lists the resources with which an operator reports its own state, independent of changes of
// its objects.
var operatorStateResources = []string{"leases", "kopfpeerings", "clusterkopfpeerings", "events"}

// isOperatorState reports whether the request writes a Kubernetes event, a keep-alive of peering, or a lease.
func (w Write) isOperatorState() bool {
	return slices.ContainsFunc(strings.Split(w.Path, "/"),
		func(part string) bool { return slices.Contains(operatorStateResources, part) })
}

// writes records the write requests of one operator, in the order of the responses.
type writes struct {
	mu  sync.Mutex
	all []Write
}

// wrapRoundTrip returns a transport that records write requests.
func (w *writes) wrapRoundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		verb := writeVerbOf(r)
		if verb == "" {
			return next.RoundTrip(r)
		}
		sent := Write{Verb: verb, Path: r.URL.Path, At: time.Now()}
		if r.Body != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			_ = r.Body.Close()
			copied := *r // a RoundTripper must not change the request
			copied.Body = io.NopCloser(bytes.NewReader(body))
			r, sent.Body = &copied, body
		}
		response, err := next.RoundTrip(r)
		if err == nil {
			sent.Code = response.StatusCode
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, sent)
		return response, err
	})
}

// writeVerbOf returns the Kubernetes verb of a write request. It is empty for reads, and for reviews of tokens and
// permissions, which are sent by POST but change nothing.
func writeVerbOf(r *http.Request) string {
	switch {
	case strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/"),
		strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/"):
		return ""
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType):
		return "apply"
	case r.Method == http.MethodPatch:
		return "patch"
	case r.Method == http.MethodDelete:
		return "delete"
	}
	return ""
}

// copyWrites returns copies of all writes, with their moments for the given time zero.
func (w *writes) copyWrites(zero time.Time) []Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.all)
	for i := range all {
		all[i].moment = newMoment(all[i].At, zero)
	}
	return all
}

// roundTrip is a function that implements [http.RoundTripper].
type roundTrip func(r *http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
