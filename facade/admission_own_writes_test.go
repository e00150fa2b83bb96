package kopf_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const operatorUser = "system:serviceaccount:team-a:operator"

// identityTransport responds to SelfSubjectReview requests.
type identityTransport struct {
	next         http.RoundTripper
	status       int
	requestCount atomic.Int32
}

func (i *identityTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
		return i.next.RoundTrip(r)
	}
	i.requestCount.Add(1)
	text := fmt.Sprintf(`{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
		"status": {"userInfo": {"username": %q}}}`, operatorUser)
	return &http.Response{
		StatusCode: i.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader([]byte(text))),
	}, nil
}

// updateReviewer sends every update of a widget to a path of the operator, as an API server does, and refuses the
// updates that the operator denies.
type updateReviewer struct {
	server *portlessServer
	path   string
	mu     sync.Mutex
	last   map[string]any
}

func (r *updateReviewer) validate(t *testing.T, object map[string]any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = object
		return nil
	}
	old, metadata := r.last, object["metadata"].(map[string]any)
	if deleted := metadata["deletionTimestamp"]; deleted != nil { // the API server sets it without an update
		old = maps.Clone(old)
		before := maps.Clone(old["metadata"].(map[string]any))
		before["deletionTimestamp"] = deleted
		if grace, found := metadata["deletionGracePeriodSeconds"]; found {
			before["deletionGracePeriodSeconds"] = grace
		}
		old["metadata"] = before
	}
	status, verdict := r.server.post(t, r.path, request(map[string]any{
		"operation": "UPDATE", "object": object, "oldObject": old,
		"userInfo": map[string]any{"username": operatorUser},
	}))
	if status != http.StatusOK || !verdict.Allowed {
		return memapi.NewRefusal(http.StatusForbidden)
	}
	r.last = object
	return nil
}

// TestOwnWebhookAdmitsOwnWrites shows that the operator's own writes do not call its validating handler, so that
// the handler cannot block progress records, finalizers or status. Deviation: D-own-writes.
func TestOwnWebhookAdmitsOwnWrites(t *testing.T) {
	asKopf := kopf.AsKopf()
	for name, tc := range map[string]struct {
		settings kopf.Settings
		path     string
	}{
		"own formats": {kopf.Settings{}, "/test.example.org/validate/guard"}, "AsKopf": {asKopf, "/guard"},
	} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				api := &identityTransport{next: server, status: http.StatusCreated}
				op := kopf.New("test.example.org", tc.settings)
				widgets := kopf.For(op, &Widget{})
				var mu sync.Mutex
				var called []string
				note := func(_ context.Context, c *Change) error {
					mu.Lock()
					defer mu.Unlock()
					called = append(called, string(c.Reason))
					c.SetResult("done")
					return nil
				}
				widgets.OnCreate("made", note)
				widgets.OnDelete("gone", note)
				widgets.Validate("guard", func(_ context.Context, a *Admission) error {
					t.Errorf("own writes do not call the admission handler: %s", cmp.Diff(a.Old, a.Object))
					return kopf.Deny(http.StatusForbidden, "no")
				})
				on, _, stop := operateServing(t, api, op)
				defer stop()
				time.Sleep(5 * time.Second)
				webhook := &updateReviewer{server: on, path: tc.path}
				server.SetAdmission(memapi.Admission{Validate: func(_ memapi.Resource, object map[string]any) error {
					return webhook.validate(t, object)
				}})
				createWidget(t, server)
				time.Sleep(time.Minute)
				if status := server.Object(widgetResource, "ns", "w1")["status"]; status == nil {
					t.Errorf("the result of the handler is saved: got %v", server.Object(widgetResource, "ns", "w1"))
				}
				server.Delete(widgetResource, "ns", "w1")
				time.Sleep(time.Minute)
				if left := server.Object(widgetResource, "ns", "w1"); left != nil {
					t.Errorf("the deleted object is released: got %v", left)
				}
				mu.Lock()
				defer mu.Unlock()
				if d := cmp.Diff([]string{"create", "delete"}, called); d != "" {
					t.Errorf("each change handler is called once: -want, +got:\n%s", d)
				}
				if got := api.requestCount.Load(); got != 1 {
					t.Errorf("one request determines the user name of the operator: got %d", got)
				}
			})
		})
	}
}

// TestUnknownOperatorUser shows that a failed SelfSubjectReview calls the handler and is repeated only after a
// delay.
func TestUnknownOperatorUser(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusServiceUnavailable} {
		onWidgets(t, func(t *testing.T, server *memapi.Server) {
			api := &identityTransport{next: server, status: status}
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).Validate("guard", func(context.Context, *Admission) error {
				return kopf.Deny(http.StatusForbidden, "no")
			})
			on, _, stop := operateServing(t, api, op)
			defer stop()
			time.Sleep(5 * time.Second)
			object := body(nil)
			object["status"] = map[string]any{"a": "b"}
			asked := request(map[string]any{"operation": "UPDATE", "object": object, "oldObject": body(nil),
				"userInfo": map[string]any{"username": operatorUser}})
			for range 3 {
				code, verdict := on.post(t, "/test.example.org/validate/guard", asked)
				if code != 200 || verdict.Allowed {
					t.Errorf("an unknown operator user calls the handler: got %d, %+v", code, verdict)
				}
			}
			got := api.requestCount.Load()
			api.status = http.StatusCreated
			time.Sleep(2 * time.Minute)
			code, verdict := on.post(t, "/test.example.org/validate/guard", asked)
			if code != 200 || !verdict.Allowed {
				t.Errorf("the SelfSubjectReview is repeated after a delay: got %d, %+v", code, verdict)
			}
			if got != 1 {
				t.Errorf("status %d: one SelfSubjectReview per delay: got %d", status, got)
			}
		})
	}
}
