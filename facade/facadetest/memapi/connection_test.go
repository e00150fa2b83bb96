package memapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var widget = memapi.Resource{
	Group: "memapi.example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
	StatusSubresource: true,
}

// newWidgetServer returns a server with one widget, and a client with its connection.
func newWidgetServer(t *testing.T) (*memapi.Server, *memapi.Connection, client.Client, *unstructured.Unstructured) {
	t.Helper()
	server := memapi.New()
	server.Install(widget)
	connection := server.Connect()
	c, err := memapi.NewClient(connection, widget)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "memapi.example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "ns", "name": "a"}, "spec": map[string]any{"owner": "ann"},
	}}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	connection.DrainRequests()
	return server, connection, c, object
}

func give(owner string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"spec":{"owner":"`+owner+`"}}`))
}

func owner(server *memapi.Server) string {
	value, _, _ := unstructured.NestedString(server.Object(widget, "ns", "a"), "spec", "owner")
	return value
}

func TestConnectionHooks(t *testing.T) {
	errLost := errors.New("lost")
	cases := map[string]struct {
		reason        string
		before, after error
		check         func(error) bool
		owner         string
		code          int
	}{
		"RefusedBefore": {
			reason: "a refusal by Before replaces the request", before: memapi.NewRefusal(403),
			check: apierrors.IsForbidden, owner: "ann", code: 403,
		},
		"LostBefore": {
			reason: "any other error of Before is an error of the connection", before: errLost,
			check: func(err error) bool { return errors.Is(err, errLost) }, owner: "ann",
		},
		"RefusedAfter": {
			reason: "a request takes effect although After refuses it", after: memapi.NewRefusal(504),
			check: func(err error) bool { return apierrors.IsTimeout(err) || apierrors.ReasonForError(err) != "" },
			owner: "bob", code: 504,
		},
		"LostAfter": {
			reason: "a request takes effect although its answer is lost", after: errLost,
			check: func(err error) bool { return errors.Is(err, errLost) }, owner: "bob",
		},
		"Undisturbed": {
			reason: "hooks without an error change nothing", check: func(err error) bool { return err == nil },
			owner: "bob", code: 200,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server, connection, c, object := newWidgetServer(t)
			connection.Before = func(context.Context, memapi.Request) error { return tc.before }
			connection.After = func(context.Context, memapi.Request) error { return tc.after }
			if err := c.Patch(t.Context(), object, give("bob")); !tc.check(err) {
				t.Errorf("%s: got the error %v", tc.reason, err)
			}
			if got := owner(server); got != tc.owner {
				t.Errorf("%s: the owner is %s, want %s", tc.reason, got, tc.owner)
			}
			want := []memapi.Request{{
				Verb: "patch", Resource: widget, Namespace: "ns", Name: "a", Body: []byte(`{"spec":{"owner":"bob"}}`),
				Path: "/apis/memapi.example.org/v1/namespaces/ns/widgets/a", Query: map[string][]string{},
				ContentType: string(types.MergePatchType), Code: tc.code,
			}}
			if d := cmp.Diff(want, connection.DrainRequests()); d != "" {
				t.Errorf("%s: the record: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestConnectionHooksMayEdit(t *testing.T) {
	server, connection, c, object := newWidgetServer(t)
	connection.Before = func(context.Context, memapi.Request) error {
		server.Edit(widget, "ns", "a", func(object map[string]any) { object["spec"] = map[string]any{"owner": "eve"} })
		return nil
	}
	object.SetLabels(map[string]string{"l": "1"})
	if err := c.Update(t.Context(), object); !apierrors.IsConflict(err) {
		t.Errorf("an edit by another client before the update must cause a conflict, got %v", err)
	}
}

func TestContextEndsInAHook(t *testing.T) {
	server, connection, c, object := newWidgetServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	connection.Before = func(context.Context, memapi.Request) error { cancel(); return nil }
	if err := c.Patch(ctx, object, give("bob")); !errors.Is(err, context.Canceled) || owner(server) != "ann" {
		t.Errorf("a canceled request must not reach the server: %v, owner %s", err, owner(server))
	}
}

func TestCut(t *testing.T) {
	server, connection, c, object := newWidgetServer(t)
	r, err := http.NewRequestWithContext(
		t.Context(), http.MethodGet, "http://mem/apis/memapi.example.org/v1/widgets?watch=true&resourceVersion=1", nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := connection.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	connection.After = func(context.Context, memapi.Request) error { connection.Cut(); return nil }
	if err := c.Patch(t.Context(), object, give("bob")); !errors.Is(err, memapi.ErrCut) || owner(server) != "bob" {
		t.Errorf("Cut must lose the answer and keep the effect: %v, owner %s", err, owner(server))
	}
	if err := c.Patch(t.Context(), object, give("eve")); !errors.Is(err, memapi.ErrCut) || owner(server) != "bob" {
		t.Errorf("no request may reach the server after Cut: %v, owner %s", err, owner(server))
	}
	if data, _ := io.ReadAll(watch.Body); !strings.Contains(string(data), "ADDED") {
		t.Errorf("the watch must show its events before it ends: %s", data)
	}
	_ = watch.Body.Close()
	other, err := memapi.NewClient(server.Connect(), widget)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Patch(t.Context(), object, give("joe")); err != nil || owner(server) != "joe" {
		t.Errorf("other connections must still work: %v, owner %s", err, owner(server))
	}
}

func TestCompact(t *testing.T) {
	server, connection, _, object := newWidgetServer(t)
	server.Compact()
	watch := func(version string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://mem/apis/memapi.example.org/v1/widgets?watch=true&resourceVersion="+version, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := connection.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if code := watch("1"); code != http.StatusGone {
		t.Errorf("a watch from before the compaction must be gone, got the code %d", code)
	}
	if code := watch(object.GetResourceVersion()); code != http.StatusOK {
		t.Errorf("a watch from the present version must work, got the code %d", code)
	}
}

// unanswered is a transport whose requests wait until their context ends.
type unanswered struct{}

func (unanswered) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestServerOfUnansweredTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if found := memapi.ServerOf(unanswered{}); found != nil || time.Since(began) > 10*time.Second {
			t.Errorf("an unanswered transport: got the server %v after %v, want none in 10s", found, time.Since(began))
		}
		server := memapi.New()
		if memapi.ServerOf(server.Connect()) != server {
			t.Error("ServerOf must find the server behind a connection")
		}
	})
}
