package adapters_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// hostile is an error whose method panics.
type hostile struct{ error }

func (hostile) Permanent() bool { panic("boo") }

// refusal is a permanent error, as Deny returns it.
var refusal = permanentError{errOrdinary}

type permanentError struct{ error }

func (permanentError) Permanent() bool { return true }

var database = discovery.Resource{GroupVersionKind: schema.GroupVersionKind{
	Group: "example.org", Version: "v1", Kind: "Database",
}}

// TestMetricsOfAdmission shows that a denied request does not count as a failure of the handler, and that the reason is
// the operation.
func TestMetricsOfAdmission(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		operation string
		err       error
		panics    bool
		want      string
	}{
		"Allowed": {"a handler without an error counts as a success", "CREATE", nil, false, "success reason=CREATE"},
		"Denied":  {"a permanent error counts as a denial", "UPDATE", refusal, false, "denied reason=UPDATE"},
		"API": {
			"a client error of the API counts as a denial", "DELETE", apierrors.NewBadRequest("no"), false,
			"denied reason=DELETE",
		},
		"Unable": {
			"a server error of the API counts as a failure", "CREATE", apierrors.NewInternalError(errOrdinary), false,
			"failure reason=CREATE",
		},
		"Ordinary": {"an ordinary error counts as a failure", "CREATE", errOrdinary, false, "failure reason=CREATE"},
		"Panic": {"a panic counts as a failure, even with a permanent error", "CREATE", refusal, true,
			"failure reason=CREATE"},
		"Hostile": {"an error whose methods panic counts as a failure", "CREATE", hostile{errOrdinary}, false,
			"failure reason=CREATE"},
		"Arbitrary": {"an unknown operation does not add a series", "anything", nil, false, "success reason="},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			h := &handlers.Handler{ID: "check", Family: handlers.Admitting}
			h.Call = func(context.Context, *handlers.Invocation) error {
				if tc.panics {
					panic(tc.err)
				}
				return tc.err
			}
			a := execution.NewAttempt(h, &cause.Cause{}, nil)
			a.Call.Resource, a.Call.Admission = &database, &handlers.AdmissionRequest{Operation: tc.operation}
			attempt(t.Context(), t, adapters.New(h, newMetrics(t, "op", registry)), a)
			wanted := "kopf_handler_attempts_total handler=check kind=Database.example.org operator=op outcome=" +
				tc.want
			if got := gathered(t, registry); got[wanted] != 1 {
				t.Errorf("%s: %s is missing in %v", tc.reason, wanted, got)
			}
		})
	}
}

// TestFailuresAreExpected shows that each family has counters, from the start, for all its failures and reasons.
func TestFailuresAreExpected(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		want    map[string][]string // the reasons by handler and outcome
	}{
		"Create": {
			"a create handler can have sub-handlers", handlers.Handler{Family: handlers.Changing, Reason: cause.Create},
			map[string][]string{"fn failure": {"create"}, "fn retry": {"create"}, "fn/* failure": {"create"}},
		},
		"Field": {
			"a field handler can be called for all reasons", handlers.Handler{Family: handlers.Changing},
			map[string][]string{
				"fn failure":   {"create", "delete", "resume", "update"},
				"fn retry":     {"create", "delete", "resume", "update"},
				"fn/* failure": {"create", "delete", "resume", "update"},
			},
		},
		"Resume": {
			"a resume handler is called with creations and updates, but not with deletions",
			handlers.Handler{Family: handlers.Changing, Initial: true},
			map[string][]string{
				"fn failure": {"create", "resume", "update"}, "fn retry": {"create", "resume", "update"},
				"fn/* failure": {"create", "resume", "update"},
			},
		},
		"Daemon": {
			"a daemon has no reason", handlers.Handler{Family: handlers.Background,
				Background: &handlers.BackgroundOptions{}},
			map[string][]string{"fn failure": {""}, "fn retry": {""}},
		},
		"Event": {
			"an event handler has no reason", handlers.Handler{Family: handlers.Watching},
			map[string][]string{"fn failure": {""}, "fn retry": {""}},
		},
		"Admission": {
			"an admission handler has its operations as reasons, and no retries",
			handlers.Handler{Family: handlers.Admitting, Operations: []string{"CREATE", "UPDATE"}},
			map[string][]string{"fn denied": {"CREATE", "UPDATE"}, "fn failure": {"CREATE", "UPDATE"}},
		},
		"AllRequests": {
			"an admission handler without operations is called for all of them",
			handlers.Handler{Family: handlers.Admitting},
			map[string][]string{
				"fn denied":  {"CONNECT", "CREATE", "DELETE", "UPDATE"},
				"fn failure": {"CONNECT", "CREATE", "DELETE", "UPDATE"},
			},
		},
		"Index": {"an index handler has no counters", handlers.Handler{Family: handlers.Indexing},
			map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			tc.handler.ID = "fn"
			h := adapters.New(&tc.handler, newMetrics(t, "op", registry))
			h.ExpectFailures(database.GroupKind())
			h.ExpectFailures(database.GroupKind())
			want := map[string]float64{}
			for label, reasons := range tc.want {
				var handler, outcome string
				if _, err := fmt.Sscan(label, &handler, &outcome); err != nil {
					t.Fatal(err)
				}
				for _, reason := range reasons {
					want[fmt.Sprintf("kopf_handler_attempts_total handler=%s kind=Database.example.org operator=op "+
						"outcome=%s reason=%s", handler, outcome, reason)] = 0
				}
			}
			if d := cmp.Diff(want, gathered(t, registry)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
	adapters.New(&handlers.Handler{ID: "fn", Family: handlers.Watching}, nil).ExpectFailures(database.GroupKind())
}
