package patching_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// fakeServer is an API server that records the last request and always returns the same response.
type fakeServer struct {
	code    int
	answer  func() io.Reader
	warning string

	requestText, acceptHeader string
}

func (s *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requestText, s.acceptHeader = r.Method+" "+r.URL.RequestURI(), r.Header.Get("Accept")
	if r.Body != nil {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		s.requestText += " " + r.Header.Get("Content-Type") + " " + string(sent)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if s.warning != "" {
		header.Set("Warning", `299 - "`+s.warning+`"`)
	}
	return &http.Response{StatusCode: s.code, Header: header, Body: io.NopCloser(s.answer()), Request: r}, nil
}

func textOf(text string) func() io.Reader { return func() io.Reader { return strings.NewReader(text) } }

// failingConnection is a connection that breaks.
type failingConnection struct{ err error }

func (f failingConnection) Read([]byte) (int, error) { return 0, f.err }

// warningRecorder records the warnings of the API server.
type warningRecorder []string

func (w *warningRecorder) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	*w = append(*w, text)
}

var (
	objectKey = types.NamespacedName{Name: "a"}
	pods      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	grants    = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "grants"}
)

// TestClient shows the requests of the client, and that warnings are passed on.
func TestClient(t *testing.T) {
	merge := patching.RawPatch{Type: types.MergePatchType, Data: []byte(`{"a":1}`)}
	ofStatus := patching.RawPatch{
		Type: types.JSONPatchType, Data: []byte(`[]`), Status: true, FieldManager: "me & you",
	}
	type key = types.NamespacedName
	patch := func(r patching.RawPatch) func(*patching.ObjectClient, key, func([]byte) error) error {
		return func(c *patching.ObjectClient, of key, take func([]byte) error) error {
			return c.Patch(t.Context(), of, r, take)
		}
	}
	get := func(c *patching.ObjectClient, of key, take func([]byte) error) error {
		return c.Get(t.Context(), of, take)
	}
	tests := map[string]struct {
		reason   string
		resource schema.GroupVersionResource
		of       key
		send     func(*patching.ObjectClient, key, func([]byte) error) error
		want     string
	}{
		"Get": {
			"an object of the core group has its own path", pods, key{Namespace: "n", Name: "a"}, get,
			"GET /api/v1/namespaces/n/pods/a",
		},
		"Wide": {"a cluster-scoped object has a path without a namespace",
			grants, objectKey, get, "GET /apis/example.org/v1/grants/a"},
		"Patch": {
			"an empty field manager is omitted", grants, objectKey, patch(merge),
			`PATCH /apis/example.org/v1/grants/a application/merge-patch+json {"a":1}`,
		},
		"Status": {
			"a status is patched at its own path", pods, key{Namespace: "n", Name: "a"}, patch(ofStatus),
			`PATCH /api/v1/namespaces/n/pods/a/status?fieldManager=me+%26+you application/json-patch+json []`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server, said := &fakeServer{code: http.StatusOK, answer: textOf(`{"b":2}`), warning: "old"},
				&warningRecorder{}
			config := &rest.Config{Host: "http://server", WarningHandlerWithContext: said}
			// The formats of the configuration are ignored: the client always uses JSON.
			config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/cbor"
			client := patching.NewObjectClient(config, &http.Client{Transport: server}, tc.resource)
			var got string
			err := tc.send(client, tc.of, func(text []byte) error { got = string(text); return nil })
			if err != nil {
				t.Fatal(err)
			}
			want := []string{tc.want, "application/json", `{"b":2}`, "old"}
			if d := cmp.Diff(want, append([]string{server.requestText, server.acceptHeader, got}, *said...)); d != "" {
				t.Errorf("%s: request, accepted format, response, warning: -want, +got\n%s", tc.reason, d)
			}
		})
	}
}

// ignoringHandler is a handler of warnings without a context, as in former versions of client-go.
type ignoringHandler struct{ ignoredCount int }

func (i *ignoringHandler) HandleWarningHeader(int, string, string) { i.ignoredCount++ }

// TestWarningsAreForWhomTheConfigurationSays shows that warnings go to the configured handler, or to the log.
func TestWarningsAreForWhomTheConfigurationSays(t *testing.T) {
	var said int
	log := funcr.New(func(string, string) { said++ }, funcr.Options{})
	server := &fakeServer{code: http.StatusOK, answer: textOf(`{}`), warning: "old"}
	older := &ignoringHandler{}
	for _, config := range []*rest.Config{{Host: "http://server", WarningHandler: older}, {Host: "http://server"}} {
		client := patching.NewObjectClient(config, &http.Client{Transport: server}, pods)
		taken := func([]byte) error { return nil }
		if err := client.Get(logr.NewContext(t.Context(), log), objectKey, taken); err != nil {
			t.Fatal(err)
		}
	}
	if older.ignoredCount != 1 || said != 1 {
		t.Errorf("%d warnings were ignored and %d were logged, want one each", older.ignoredCount, said)
	}
}

// TestClientFails shows that errors of the server, the connection and the callback are returned.
func TestClientFails(t *testing.T) {
	broken := errors.New("the connection broke")
	half := func() io.Reader { return io.MultiReader(strings.NewReader(`{"a":`), failingConnection{broken}) }
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"no"}`
	refusal := errors.New("the callback refuses the response")
	tests := map[string]struct {
		reason string
		server fakeServer
		is     func(error) bool
	}{
		"Refused": {
			"an error of the API server is returned", fakeServer{code: http.StatusConflict, answer: textOf(status)},
			apierrors.IsConflict,
		},
		"Cut": {
			"a response that breaks off is an error", fakeServer{code: http.StatusOK, answer: half},
			func(err error) bool { return errors.Is(err, broken) },
		},
		"NotTaken": {
			"an error of the callback is returned", fakeServer{code: http.StatusOK, answer: textOf(`{}`)},
			func(err error) bool { return errors.Is(err, refusal) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			way := &http.Client{Transport: &tc.server}
			c := patching.NewObjectClient(&rest.Config{Host: "http://server"}, way, grants)
			refuse := func([]byte) error { return refusal }
			if err := c.Get(t.Context(), objectKey, refuse); !tc.is(err) {
				t.Errorf("%s: reading returned %v", tc.reason, err)
			}
			if err := c.Patch(t.Context(), objectKey, patching.RawPatch{Type: types.MergePatchType},
				refuse); !tc.is(err) {
				t.Errorf("%s: patching returned %v", tc.reason, err)
			}
		})
	}
}

// closingReader records that it was closed.
type closingReader struct {
	io.Reader
	closed bool
}

func (c *closingReader) Close() error { c.closed = true; return nil }

// TestAnswersAreClosed shows that a response is closed even if the callback fails. Otherwise its connection could not
// be reused.
func TestAnswersAreClosed(t *testing.T) {
	body := &closingReader{Reader: strings.NewReader(`{}`)}
	way := &http.Client{Transport: responder(func(r *http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}
	})}
	client := patching.NewObjectClient(&rest.Config{Host: "http://server"}, way, grants)
	refuse := func([]byte) error { return errors.New("no") }
	if err := client.Patch(t.Context(), objectKey, patching.RawPatch{Type: types.MergePatchType}, refuse); err == nil {
		t.Error("the error of the callback is not returned")
	}
	if !body.closed {
		t.Error("the response is not closed")
	}
}

type responder func(*http.Request) *http.Response

func (a responder) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// TestTimeout shows that the timeout covers all attempts together, as an overloaded server may request any number of
// them.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		way := &http.Client{Timeout: 10 * time.Second, Transport: responder(func(r *http.Request) *http.Response {
			asked++
			return &http.Response{
				StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"4"}},
				Body: io.NopCloser(strings.NewReader("")), Request: r,
			}
		})}
		client := patching.NewObjectClient(&rest.Config{Host: "http://server", QPS: -1}, way, grants)
		begun := time.Now()
		err := client.Patch(t.Context(), objectKey, patching.RawPatch{Type: types.MergePatchType}, nil)
		if took := time.Since(begun); err == nil || took > 10*time.Second || asked < 2 {
			t.Errorf("got %v after %s and %d attempts", err, took, asked)
		}
	})
}

// TestClientOfABadConfiguration shows that an invalid configuration is an error of each request.
func TestClientOfABadConfiguration(t *testing.T) {
	c := patching.NewObjectClient(&rest.Config{Host: "http://[::1"}, http.DefaultClient, grants)
	for _, err := range []error{c.Get(t.Context(), objectKey, nil),
		c.Patch(t.Context(), objectKey, patching.RawPatch{}, nil)} {
		if err == nil || !strings.Contains(err.Error(), "grants") {
			t.Errorf("the error does not name the resource: %v", err)
		}
	}
}
