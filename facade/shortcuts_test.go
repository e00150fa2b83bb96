package kopf_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// TestSleep shows when Sleep ends, and its results.
func TestSleep(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		sleep        time.Duration
		stopDelay    time.Duration // of the operator
		opts         []kopf.Option
		wantResults  []bool
		wantDuration time.Duration
	}{
		"Stopping": {
			"Sleep ends when the task must stop", time.Minute, 90 * time.Second, nil, []bool{true, false},
			90 * time.Second,
		},
		"Timeout": {
			"Sleep ends with the context of the task", time.Minute, time.Hour,
			[]kopf.Option{kopf.Timeout(70 * time.Second)},
			[]bool{true, false}, 70 * time.Second,
		},
		"Unitless": {
			"a duration without a unit becomes a second", 30, 2500 * time.Millisecond, nil, []bool{true, true, false},
			2500 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var slept []bool
				var took time.Duration
				op := kopf.New("sleep.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
				kopf.ForResource(op, "configmaps").Daemon("d", func(
					_ context.Context, r *kopf.Task[*kopf.Unstructured],
				) error {
					began := time.Now()
					for {
						goes := r.Sleep(tc.sleep)
						mu.Lock()
						slept, took = append(slept, goes), time.Since(began).Truncate(time.Second/2)
						mu.Unlock()
						if !goes {
							return nil
						}
					}
				}, kopf.JoinOptions(tc.opts...))
				server := memapi.New()
				server.Put(memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true},
					map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "w1"}})
				r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
				r.Ready()
				synctest.Wait()
				time.Sleep(tc.stopDelay)
				if err := r.Stop(); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if d := cmp.Diff(tc.wantResults, slept); d != "" || took != tc.wantDuration {
					t.Errorf("%s: after %s, -want, +got:\n%s", tc.reason, took, d)
				}
			})
		})
	}
	began := time.Now()
	facadetest.NewTask(&Widget{}, facadetest.Stopping(kopf.ErrExiting)).Call(t.Context(), func(
		_ context.Context, r *kopf.Task[*Widget],
	) error {
		if r.Sleep(time.Hour) || r.Sleep(0) {
			t.Error("Sleep must return false at once if the task must stop")
		}
		return nil
	})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("Sleep took %s in a task that must stop", took)
	}
}

// TestTemporaryWithoutADelay shows which delay a temporary error without a delay has.
func TestTemporaryWithoutADelay(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		reason string
		err    error
		opts   []kopf.Option
		want   time.Duration
	}{
		"Default": {"without a delay, the operator's backoff applies", kopf.Temporary(broken), nil, time.Minute},
		"Backoff": {
			"without a delay, the handler's backoff applies", kopf.Temporary(broken),
			[]kopf.Option{kopf.Backoff(time.Hour)}, time.Hour,
		},
		"Mode": {
			"a temporary error is retried, whatever the mode for other errors", kopf.Temporary(broken),
			[]kopf.Option{kopf.Errors(kopf.ErrorsPermanent)}, time.Minute,
		},
		"Zero": {"a delay of zero retries at once", kopf.Temporary(broken, 0), []kopf.Option{kopf.Backoff(time.Hour)},
			0},
		"Wrapped": {"an outer error without a delay overrides the inner delay",
			kopf.Temporary(kopf.Temporary(broken,
				5*time.Second)), nil, time.Minute},
		"Inner": {
			"the delay of the outer error counts", kopf.Temporary(kopf.Temporary(broken), 5*time.Second), nil,
			5 * time.Second,
		},
	} {
		got := facadetest.NewChange(&Widget{}, facadetest.Reason(kopf.ReasonCreate)).Call(t.Context(), func(
			context.Context, *Change,
		) error {
			return tc.err
		}, tc.opts...)
		if got.Final || got.Delay != tc.want || !errors.Is(got.Err, broken) {
			t.Errorf("%s: %s: got %+v", name, tc.reason, got)
		}
	}
	if execution.IsPermanent(kopf.Temporary(kopf.Permanent(broken))) {
		t.Error("a temporary error around a permanent one must be temporary")
	}
}

// TestPatchAt shows that PatchField sets and removes fields, and that its failures are errors of the handler.
func TestPatchAt(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "spec": map[string]any{"size": int64(1), "tags": "x"},
	}}
	value := map[string]any{"a": []any{"b"}}
	got := facadetest.NewChange[*kopf.Unstructured](
		object,
		facadetest.Reason(kopf.ReasonCreate),
	).Call(t.Context(), func(
		_ context.Context, c *kopf.Change[*kopf.Unstructured],
	) error {
		kopf.PatchField(c, "status.phase", "Ready")
		kopf.PatchField(c, "spec.more", value)
		value["a"] = "too late"
		kopf.PatchField(c, "spec.size", nil)
		return nil
	})
	want := map[string]any{
		"status": map[string]any{"phase": "Ready"},
		"spec":   map[string]any{"more": map[string]any{"a": []any{"b"}}, "size": nil},
	}
	if d := cmp.Diff(want, got.Patch); d != "" || got.Err != nil {
		t.Errorf("the patched fields: error %v, -want, +got:\n%s", got.Err, d)
	}
	for want, patch := range map[string]func(c *kopf.Change[*kopf.Unstructured]){
		"setting spec.tags.x of object": func(c *kopf.Change[*kopf.Unstructured]) {
			kopf.PatchField(c, "spec.tags.x", 1)
		},
		"setting spec.f of object": func(c *kopf.Change[*kopf.Unstructured]) {
			kopf.PatchField(c, "spec.f", func() {})
		},
	} {
		got := facadetest.NewChange[*kopf.Unstructured](
			object,
			facadetest.Reason(kopf.ReasonCreate),
		).Call(t.Context(), func(
			_ context.Context, c *kopf.Change[*kopf.Unstructured],
		) error {
			patch(c)
			return nil
		})
		if got.Err == nil || !strings.Contains(got.Err.Error(), want) {
			t.Errorf("want %q, got the error %v", want, got.Err)
		}
	}
}

// TestForResourceAs shows that a resource can be handled with a Go type, and that its mistakes are reported.
func TestForResourceAs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &journal{}
		op := kopf.New("typed.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
		note := func(_ context.Context, c *Change) error {
			seen.add(c.Object.Name + " " + c.Object.Spec.Owner)
			return nil
		}
		kopf.ForResourceAs[*Widget](op, "example.org", "widgets").OnCreate("c", note, kopf.InField("spec.owner"))
		server := memapi.New()
		server.Install(widgetResource)
		server.Put(widgetResource, body(map[string]any{"owner": "me", "unknown": "kept"}))
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(time.Minute)
		synctest.Wait()
		seen.requireLines(t, "w1 me")
	})
	op := kopf.New("test.example.org")
	kopf.ForResourceAs[*Widget](op, "widgets").OnCreate("c", succeed, kopf.InField("spec.sizes"))
	kopf.ForResourceAs[*Widget](op).OnCreate("c", succeed)
	_, err := kopf.Plan(op, newScheme(t))
	for _, want := range []string{"spec.sizes", "kopf.ForResourceAs()"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error %v", want, err)
		}
	}
}
