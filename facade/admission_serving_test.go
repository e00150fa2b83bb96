package kopf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// portlessServer is a webhook server without a port.
type portlessServer struct{ mux *http.ServeMux }

func (s *portlessServer) NeedLeaderElection() bool { return false }

func (s *portlessServer) Register(path string, handler http.Handler) { s.mux.Handle(path, handler) }

func (s *portlessServer) Start(ctx context.Context) error { <-ctx.Done(); return nil }

func (s *portlessServer) StartedChecker() healthz.Checker { return healthz.Ping }

func (s *portlessServer) WebhookMux() *http.ServeMux { return s.mux }

// post sends a request for admission to a path.
func (s *portlessServer) post(
	t *testing.T, path string, asked map[string]any,
) (status int, verdict review.ObjectVerdict) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"request": asked})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	s.mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(text)))
	var out review.Response
	if answer.Code == http.StatusOK {
		if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
	}
	return answer.Code, out.Response
}

// countedPath counts the requests to a path.
type countedPath struct {
	next  http.RoundTripper
	path  string
	count atomic.Int32
}

func (c *countedPath) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, c.path) {
		c.count.Add(1)
	}
	return c.next.RoundTrip(r)
}

// operateServing is like operate, with a webhook server.
func operateServing(
	t *testing.T, server http.RoundTripper, op *kopf.Operator,
) (on *portlessServer, ready *checkedManager, stop func()) {
	t.Helper()
	on = &portlessServer{http.NewServeMux()}
	ready = newCheckedManager(managerOn(t, server, func(o *ctrl.Options) { o.WebhookServer = on }))
	if err := op.SetupWithManager(ready); err != nil {
		t.Fatal(err)
	}
	end := startManager(t, ready)
	return on, ready, func() {
		if err := end(); err != nil {
			t.Errorf("the manager: %v", err)
		}
	}
}

// TestAdmissionIsServed shows that an operator with only admission handlers serves them at its own paths and does
// not watch their kinds.
func TestAdmissionIsServed(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		lists := &countedPath{next: server, path: "/widgets"}
		op := kopf.New("test.example.org")
		widgets := kopf.For(op, &Widget{})
		widgets.Validate("fn", func(context.Context, *Admission) error { return kopf.Deny(403, "no") })
		widgets.Mutate("fn", func(_ context.Context, a *Admission) error { a.Object.Spec.Size = 3; return nil })
		on, ready, stop := operateServing(t, lists, op)
		defer stop()
		time.Sleep(5 * time.Second)
		if status, verdict := on.post(t, "/test.example.org/validate/fn", request(nil)); status != 200 ||
			verdict.Allowed || verdict.Status.Code != 403 {
			t.Errorf("the validating path calls the validating handler: got %d, %+v", status, verdict)
		}
		if status, verdict := on.post(t, "/test.example.org/mutate/fn", request(nil)); status != 200 ||
			!verdict.Allowed || !strings.Contains(string(verdict.Patch), "/spec/size") {
			t.Errorf("the mutating path calls the mutating handler: got %d, %+v", status, verdict)
		}
		if status, _ := on.post(t, "/test.example.org/validate/other", request(nil)); status != 404 {
			t.Errorf("an unknown path is not found: got %d", status)
		}
		if all := failing(ready.readyzChecks); len(all) > 0 {
			t.Errorf("the operator is ready: %q", all)
		}
		if n := lists.count.Load(); n > 0 {
			t.Errorf("an operator with only admission handlers does not watch: got %d requests", n)
		}
	})
}

// TestAdmissionPathsAsKopf shows that the root path calls all handlers and that an unknown id is an error
// (D-admission-root), and that a denial also denies with IgnoreFailures (K-ignore-failures).
func TestAdmissionPathsAsKopf(t *testing.T) {
	onWidgets(t, func(t *testing.T, api *memapi.Server) {
		op := kopf.New("test.example.org", kopf.AsKopf())
		widgets := kopf.For(op, &Widget{})
		var calls []string
		for _, id := range []string{"first", "second"} {
			widgets.Validate(id, func(_ context.Context, a *Admission) error {
				calls = append(calls, a.ID+" at "+a.Headers.Get("Host"))
				return kopf.Deny(403, "no")
			}, kopf.IgnoreFailures())
		}
		on, _, stop := operateServing(t, api, op)
		defer stop()
		time.Sleep(5 * time.Second)
		for path, want := range map[string][]string{
			"/": {"first at example.com", "second at example.com"}, "/second": {"second at example.com"},
			"/third": nil, "/second/": nil, "/test.example.org/validate/second": nil,
		} {
			calls = nil
			status, verdict := on.post(t, path, request(nil))
			if d := cmp.Diff(want, calls); d != "" {
				t.Errorf("POST %s calls the handlers of the path: -want, +got:\n%s", path, d)
			}
			denied := status == http.StatusOK && !verdict.Allowed && verdict.Status.Code == 403
			if denied != (want != nil) || (status == http.StatusNotFound) != (want == nil) {
				t.Errorf("POST %s: want a denial or 404: got %d, %+v", path, status, verdict)
			}
		}
	})
}

// TestAdmissionWaits shows that requests are refused until the startup has succeeded and the indices are filled.
func TestAdmissionWaits(t *testing.T) {
	for name, register := range map[string]func(op *kopf.Operator, w kopf.Selection[*Widget]){
		"startup": func(op *kopf.Operator, _ kopf.Selection[*Widget]) {
			op.OnStartup("slow", func(context.Context, *kopf.Activity) error { time.Sleep(time.Minute); return nil })
		},
		"index": func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			kopf.NewIndex(w, "slow", func(context.Context, *Widget) (map[string]string, error) {
				time.Sleep(time.Minute)
				return map[string]string{"a": "b"}, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				object := body(map[string]any{"owner": "ann"})
				server.Put(widgetResource, object)
				op := kopf.New("test.example.org")
				widgets := kopf.For(op, &Widget{})
				register(op, widgets)
				widgets.Validate("fn", registerAdmission)
				on, ready, stop := operateServing(t, server, op)
				defer stop()
				time.Sleep(30 * time.Second)
				if status, _ := on.post(t, "/test.example.org/validate/fn", request(nil)); status != 503 {
					t.Errorf("a request before the start is refused: got %d", status)
				}
				if len(failing(ready.readyzChecks)) == 0 {
					t.Error("the operator is not ready before the start")
				}
				time.Sleep(time.Minute)
				if status, verdict := on.post(t, "/test.example.org/validate/fn", request(nil)); status != 200 ||
					!verdict.Allowed {
					t.Errorf("a request after the start is served: got %d, %+v", status, verdict)
				}
				if all := failing(ready.readyzChecks); len(all) > 0 {
					t.Errorf("the operator is ready after the start: %q", all)
				}
			})
		})
	}
}
