package adapters_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestChains shows that the chain of a handler has only the adapters that the handler needs.
func TestChains(t *testing.T) {
	filtered := []handlers.Filter{verdictAdapter(true)}
	field := diff.Path{"spec", "a"}
	plain := []string{
		"Progress", "Answer", "Occupation", "Logging", "ErrorClasses", "SubHandlers", "Recovery", "Labels",
	}
	watching := []string{"Answer", "Occupation", "Logging", "ErrorClasses", "Recovery", "Labels"}
	spawning := []string{"Progress", "Answer", "Logging", "ErrorClasses", "Recovery", "Labels"}
	indexing := []string{"Progress", "Answer", "PlainErrors", "Recovery", "Labels"}
	limited := handlers.Policy{Timeout: ptr.To(time.Hour)}
	tests := map[string]struct {
		handler  handlers.Handler
		measured bool
		want     []string
	}{
		"Create": {handler: handlers.Handler{Reason: cause.Create}, want: after(plain, "Created")},
		"Update": {handler: handlers.Handler{Reason: cause.Update, NeedsChange: true}, want: after(plain, "Updated")},
		"Delete": {handler: handlers.Handler{Reason: cause.Delete}, want: after(plain, "Deleted")},
		"Resume": {handler: handlers.Handler{Initial: true}, want: after(plain, "Resumed")},
		"Field": {
			handler: handlers.Handler{Field: field, NeedsChange: true},
			want:    after(plain, "AnyReason", "FieldChanged", "Filters"),
		},
		"FieldOfCreate": {
			handler: handlers.Handler{Reason: cause.Create, Field: field}, want: after(plain, "Created", "Filters"),
		},
		"FieldTo": {
			handler: handlers.Handler{Reason: cause.Create, Field: field, To: handlers.IsPresent},
			want:    after(plain, "Created", "FieldChanged", "Filters"),
		},
		"Filtered": {
			handler: handlers.Handler{Reason: cause.Create, Filters: filtered},
			want:    after(plain, "Created", "Filters"),
		},
		"Everything": {
			handler: handlers.Handler{
				Reason: cause.Update, Field: field, NeedsChange: true, Filters: filtered,
				Policy: handlers.Policy{Timeout: ptr.To(time.Minute), Retries: ptr.To(1)},
			},
			measured: true,
			want: []string{
				"Updated", "FieldChanged", "Filters", "Progress", "Answer", "Occupation", "Logging", "Metrics",
				"Limits", "Deadline", "ErrorClasses", "SubHandlers", "Recovery", "Labels",
			},
		},
		"Retries": {
			handler: handlers.Handler{Reason: cause.Create, Policy: handlers.Policy{Retries: ptr.To(1)}},
			want: []string{
				"Created", "Progress", "Answer", "Occupation", "Logging", "Limits", "ErrorClasses", "SubHandlers",
				"Recovery", "Labels",
			},
		},
		"Sub": {
			handler: handlers.Handler{Root: "fn"},
			want: []string{
				"AnyReason", "Progress", "Answer", "Logging", "ErrorClasses", "SubHandlers", "Recovery", "Labels",
			},
		},
		"SubAfter": {
			handler: handlers.Handler{Root: "fn", After: []string{"a"}, AfterFinished: []string{"b"}},
			want: []string{
				"AnyReason", "Progress", "Answer", "Logging", "Dependencies", "ErrorClasses", "SubHandlers", "Recovery",
				"Labels",
			},
		},
		"Watching": {handler: handlers.Handler{Family: handlers.Watching}, want: watching},
		"WatchingFiltered": {
			handler: handlers.Handler{Family: handlers.Watching, Field: field}, want: after(watching, "Filters"),
		},
		"Spawning": {handler: handlers.Handler{Family: handlers.Background}, want: spawning},
		"SpawningTimeout": {
			handler: handlers.Handler{Family: handlers.Background,
				Policy: handlers.Policy{Timeout: ptr.To(time.Hour)}},
			measured: true,
			want: []string{
				"Progress", "Answer", "Logging", "Metrics", "Limits", "Deadline", "ErrorClasses", "Recovery", "Labels",
			},
		},
		"Acting": {
			handler: handlers.Handler{Family: handlers.Activity}, want: []string{
				"Progress", "Answer", "Logging", "ErrorClasses", "Recovery", "Labels",
			},
		},
		"ActingTimeout": {
			handler: handlers.Handler{Family: handlers.Activity, Policy: limited}, measured: true, want: []string{
				"Progress", "Answer", "Logging", "Metrics", "Limits", "Deadline", "ErrorClasses", "Recovery", "Labels",
			},
		},
		"Admitting": {
			handler: handlers.Handler{Family: handlers.Admitting},
			want:    []string{"Request", "Answer", "Logging", "Verdict", "Recovery", "Labels"},
		},
		"AdmittingFiltered": {
			handler:  handlers.Handler{Family: handlers.Admitting, Filters: filtered},
			measured: true,
			want:     []string{"Request", "Filters", "Answer", "Logging", "Metrics", "Verdict", "Recovery", "Labels"},
		},
		"Indexing": {handler: handlers.Handler{Family: handlers.Indexing}, measured: true, want: indexing},
		"IndexingTimeout": {
			handler: handlers.Handler{
				Family: handlers.Indexing, Filters: filtered, Policy: handlers.Policy{Timeout: ptr.To(time.Hour)},
			},
			want: []string{"Filters", "Progress", "Answer", "Limits", "PlainErrors", "Recovery", "Labels"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var measured *metrics.OperatorMetrics
			if tc.measured {
				measured = newMetrics(t, "op", prometheus.NewRegistry())
			}
			if d := cmp.Diff(tc.want, adapters.New(&tc.handler, measured).AdapterNames()); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
		})
	}
}

func after(rest []string, first ...string) []string { return append(first, rest...) }

// TestCauseAdaptersAgreeWithDetect shows that the adapters select handlers by the same facts as Detect, for all
// combinations of facts.
func TestCauseAdaptersAgreeWithDetect(t *testing.T) {
	list := []*handlers.Handler{
		{ID: "create", Reason: cause.Create}, {ID: "update", Reason: cause.Update},
		{ID: "delete", Reason: cause.Delete}, {ID: "resume", Initial: true},
		{ID: "resume-deleted", Initial: true, EvenIfDeleted: true}, {ID: "any"},
		{ID: "noop", Reason: cause.Noop},
	}
	for facts := range 1 << 6 {
		is := func(bit int) bool { return facts&(1<<bit) != 0 }
		metadata := object{}
		if is(0) {
			metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
		}
		if is(1) {
			metadata["finalizers"] = []any{"ours"}
		}
		o := cause.Observation{
			Body: object{"metadata": metadata}, Finalizer: "ours", Gone: is(2), Initial: is(3),
			New: object{"spec": "new"},
		}
		if is(4) {
			if o.Old = o.New; is(5) {
				o.Old = object{"spec": "old"}
			}
		}
		c := cause.Detect(o)
		want := []any{}
		for _, h := range list {
			if h.Reason == "" && !h.Initial || h.Reason != "" && h.Reason == c.Reason ||
				h.Initial && c.Initial && (!is(0) || h.EvenIfDeleted) {
				want = append(want, h.ID)
			}
		}
		selected, err := adapters.Select(t.Context(), newChains(list...), c, nil)
		if d := cmp.Diff(want, ids(selected)); d != "" || err != nil {
			t.Errorf("facts %06b, reason %s: error %v, -want, +got:\n%s", facts, c.Reason, err, d)
		}
	}
}

// TestQuestionsCallNoFunction shows that no question to a handler calls its function.
func TestQuestionsCallNoFunction(t *testing.T) {
	calls := 0
	call := func(context.Context, *handlers.Invocation) error { calls++; return nil }
	indexing := func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
		calls++
		return nil, false, nil
	}
	acting := func(context.Context, *handlers.Invocation) (any, error) { calls++; return nil, nil }
	for family := handlers.Changing; family <= handlers.Activity; family++ {
		h := adapters.New(&handlers.Handler{
			ID: "fn", Family: family, Call: call, Index: &handlers.IndexWork{Call: indexing}, Reason: "",
			ActivityFunc: acting,
		}, nil)
		for question := execution.Interest; question <= execution.Due; question++ {
			a := &execution.Attempt{Call: handlers.Invocation{Cause: updatedAdapter()}, Now: time.Now}
			ok, err := h.Ask(t.Context(), a, question)
			if want := family != handlers.Changing || question != execution.Deletion; ok != want || err != nil {
				t.Errorf("family %d, question %d: got %v, error %v", family, question, ok, err)
			}
		}
	}
	if calls != 0 {
		t.Errorf("questions called functions %d times, want 0", calls)
	}
}
