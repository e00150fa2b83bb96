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

// Write is one request of the operator that is no read.
type Write struct {
	// Verb is that of Kubernetes: create, update, patch, delete, or apply.
	Verb string
	// Path is that of the request, such as /api/v1/namespaces/default/configmaps/world/status.
	Path string
	// Body is the JSON that was sent.
	Body []byte
	// Code is that of the answer, such as 200 or 409; 0 if there was none.
	Code int
	// At is when it was sent.
	At time.Time

	moment moment
}

// String is the write in a line, without its body and its time:
//
//	patch /api/v1/namespaces/default/configmaps/world: 200
func (w Write) String() string { return fmt.Sprintf("%s %s: %d", w.Verb, w.Path, w.Code) }

// own are the resources by which an operator tells of itself, whatever happens to its objects.
var own = []string{"leases", "kopfpeerings", "clusterkopfpeerings", "events"}

// ofItself is true for Kubernetes events, for keep-alives and for leases.
func (w Write) ofItself() bool {
	return slices.ContainsFunc(strings.Split(w.Path, "/"), func(part string) bool { return slices.Contains(own, part) })
}

// writes are those of one operator, in the order in which they were answered.
type writes struct {
	mu  sync.Mutex
	all []Write
}

// around notes what goes through a connection.
func (w *writes) around(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		verb := verbOf(r)
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
			copied := *r // as a RoundTripper must not change the request
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

// verbOf is empty for reads, and for questions about users and permissions, which change nothing.
func verbOf(r *http.Request) string {
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

// list copies them, for an operator that has begun its work at zero.
func (w *writes) list(zero time.Time) []Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.all)
	for i := range all {
		all[i].moment = momentOf(all[i].At, zero)
	}
	return all
}

type roundTrip func(r *http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
