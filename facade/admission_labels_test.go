package kopf_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// withoutNamespaces hides namespaces from the operator: it responds with the status or, if the status is zero,
// blocks watch requests until they end.
type withoutNamespaces struct {
	next   http.RoundTripper
	status int
}

func (n withoutNamespaces) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Path != "/api/v1/namespaces" || r.Method != http.MethodGet:
	case n.status != 0:
		text := fmt.Sprintf(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d}`, n.status,
		)
		return &http.Response{
			StatusCode: n.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	case r.URL.Query().Get("watch") != "":
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return n.next.RoundTrip(r)
}

// TestAdmissionDoesNotWaitForLabels shows that a review calls the handler even if the operator has not seen the
// namespace label yet or cannot see it. The API server selects the namespaces of admission handlers by label;
// skipping the handler would admit the object without a check.
func TestAdmissionDoesNotWaitForLabels(t *testing.T) {
	asKopf := kopf.AsKopf()
	for name, tc := range map[string]struct {
		reason   string
		settings kopf.Settings
		status   int
	}{
		"Delayed": {"a review calls the handler before the watch delivers the label", kopf.Settings{}, 0},
		"Forbidden": {
			"a review calls the handler if namespaces cannot be listed", kopf.Settings{}, http.StatusForbidden},
		"DelayedAsKopf": {"with AsKopf, a review calls the handler before the watch delivers the label", asKopf, 0},
		"ForbiddenAsKopf": {
			"with AsKopf, a review calls the handler if namespaces cannot be listed", asKopf, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				server.Put(allNamespaces, map[string]any{"metadata": map[string]any{"name": "other"}})
				config := memapi.Config(server)
				config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return withoutNamespaces{next, tc.status}
				})
				var calls atomic.Int64
				tc.settings.NamespaceLabels, tc.settings.AddToScheme = "team=b", runtime.SchemeBuilder{addWidgets}
				op := kopf.New("test.example.org", tc.settings)
				kopf.For(op, &Widget{}).Validate("v", func(context.Context, *Admission) error {
					calls.Add(1)
					return kopf.Deny(http.StatusForbidden, "judged")
				})
				r := facadetest.Start(t, op, facadetest.Against(config))
				r.Ready()
				server.Put(allNamespaces, map[string]any{
					"metadata": map[string]any{"name": "late", "labels": map[string]any{"team": "b"}},
				})
				users, err := client.New(memapi.Config(server), client.Options{Scheme: newScheme(t)})
				if err != nil {
					t.Fatal(err)
				}
				create := func(namespace string) error {
					return users.Create(t.Context(), &Widget{
						ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w1"},
					})
				}
				if err := create("late"); err == nil || !strings.Contains(err.Error(), "judged") || calls.Load() != 1 {
					t.Errorf("%s: %d calls, got error %v, want a denial", tc.reason, calls.Load(), err)
				}
				if err := create("other"); err != nil || calls.Load() != 1 {
					t.Errorf("a namespace without the label calls no handler: got %d calls, error %v",
						calls.Load()-1, err)
				}
				if err := r.Stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
