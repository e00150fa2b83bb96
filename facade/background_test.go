package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

type Run = kopf.Task[*Widget]

func succeedTask(context.Context, *Run) error { return nil }

// TestInitialDelayThatPanics shows that a panic of the function for the initial delay is an error.
func TestInitialDelayThatPanics(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).Daemon("d", succeedTask, kopf.InitialDelay(func(*unstructured.Unstructured) time.Duration {
		panic("no delay")
	}))
	plan := planOf(t, op)
	if _, err := plan[0].Handler.Background.InitialDelay(nil); err == nil || err.Error() != "panic: no delay" {
		t.Errorf("a panic of the delay function is returned as an error: got %v", err)
	}
}

// TestBackgroundOptions shows that the options of daemons and timers reach their registrations.
func TestBackgroundOptions(t *testing.T) {
	op := kopf.New("test.example.org")
	w := kopf.For(op, &Widget{})
	w.Daemon(
		"d", succeedTask, kopf.InitialDelay(time.Second), kopf.CancelBackoff(2*time.Second),
		kopf.CancelTimeout(3*time.Second), kopf.CancelPolling(4*time.Second), kopf.Retries(5),
	)
	w.Timer("t", time.Minute, succeedTask, kopf.Sharp(), kopf.Idle(time.Hour), kopf.Jitter(0.5),
		kopf.Timeout(time.Second),
		kopf.InitialDelay(func(o *unstructured.Unstructured) time.Duration {
			return time.Duration(len(o.GetName()))
		}),
		kopf.InField("spec.owner"))
	plan := planOf(t, op)
	want := []handlers.BackgroundOptions{
		{
			Daemon:        true,
			CancelBackoff: 2 * time.Second,
			CancelTimeout: 3 * time.Second,
			CancelPolling: 4 * time.Second,
		},
		{Interval: time.Minute, Sharp: true, Idle: time.Hour, Jitter: 0.5},
	}
	delays := []time.Duration{time.Second, 4}
	for i, r := range plan {
		h := r.Handler
		if d := cmp.Diff(
			want[i], *h.Background, cmpopts.IgnoreFields(handlers.BackgroundOptions{}, "InitialDelay"),
		); d != "" || h.Family != handlers.Background {
			t.Errorf("%s: family %v, -want, +got:\n%s", h.ID, h.Family, d)
		}
		if delay, err := h.Background.InitialDelay(
			map[string]any{"metadata": map[string]any{"name": "four"}},
		); delay != delays[i] || err != nil {
			t.Errorf("%s: unexpected initial delay %s, error %v", h.ID, delay, err)
		}
	}
	if *plan[0].Handler.Policy.Retries != 5 || *plan[1].Handler.Policy.Timeout != time.Second ||
		plan[1].Handler.Field == nil {
		t.Error("daemons and timers have the retries, timeouts and filters of other handlers")
	}
}

// TestBackgroundMistakes shows that invalid registrations of daemons, timers, indices and memos are errors.
func TestBackgroundMistakes(t *testing.T) {
	tests := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     string
	}{
		"NoDaemon": {
			"a nil daemon function is an error", func(w kopf.Selection[*Widget]) { w.Daemon("d", nil) },
			`Daemon("d"): the function is nil`,
		},
		"NoTimer": {
			"a nil timer function is an error", func(w kopf.Selection[*Widget]) { w.Timer("t", time.Second, nil) },
			`Timer("t"): the function is nil`,
		},
		"NegativeInterval": {
			"a negative interval is an error",
			func(w kopf.Selection[*Widget]) { w.Timer("t", -time.Second, succeedTask) },
			"the interval -1s is negative",
		},
		"SharpOnce": {
			"Sharp without an interval is an error",
			func(w kopf.Selection[*Widget]) { w.Timer("t", 0, succeedTask, kopf.Sharp()) },
			"Sharp needs an interval",
		},
		"Jitter": {
			"a jitter greater than 1 is an error",
			func(w kopf.Selection[*Widget]) { w.Timer("t", time.Second, succeedTask, kopf.Jitter(10)) },
			"Jitter(10): it is a share",
		},
		"Idle": {
			"an idle time of zero is an error",
			func(w kopf.Selection[*Widget]) { w.Timer("t", time.Second, succeedTask, kopf.Idle(0)) },
			"Idle(0s): it must be positive",
		},
		"Backoff": {
			"a negative cancellation backoff is an error",
			func(w kopf.Selection[*Widget]) { w.Daemon("d", succeedTask, kopf.CancelBackoff(-1)) },
			"CancelBackoff(-1ns)",
		},
		"InitialDelay": {
			"a negative initial delay is an error", func(w kopf.Selection[*Widget]) {
				w.Daemon("d", succeedTask, kopf.InitialDelay(time.Duration(-1)))
			},
			"InitialDelay(-1ns)",
		},
		"InitialDelayNil": {
			"a nil function for the initial delay is an error", func(w kopf.Selection[*Widget]) {
				var none func(*kopf.Unstructured) time.Duration
				w.Daemon("d", succeedTask, kopf.InitialDelay(none))
			},
			"InitialDelay: the function is nil",
		},
		"SameID": {"two daemons with the same id are an error", func(w kopf.Selection[*Widget]) {
			w.Daemon("d", succeedTask)
			w.Daemon("d", func(context.Context, *kopf.Task[*Widget]) error { return nil })
		}, "the id is taken by Daemon"},
		"SameIDForBoth": {"a daemon and a timer with the same id are an error", func(w kopf.Selection[*Widget]) {
			w.Daemon("d", succeedTask)
			w.Timer("d", time.Second, succeedTask)
		}, `Timer("d"): the id is taken by Daemon`},
		"NoIndex": {
			"a nil index function is an error",
			func(w kopf.Selection[*Widget]) { kopf.NewIndex[*Widget, string, int](w, "i", nil) },
			`NewIndex("i"): the function is nil`,
		},
		"NoMemo": {
			"two functions for one memo are an error",
			func(w kopf.Selection[*Widget]) { kopf.NewMemo(w, nil, func() *int { return nil }) },
			"NewMemo: one function",
		},
		"EmptyMemo": {
			"a memo of an empty selection is an error",
			func(kopf.Selection[*Widget]) { kopf.NewMemo[int](kopf.Selection[*Widget]{}) },
			"NewMemo: the selection is empty",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _ = kopf.Plan(kopf.New("strays.example.org"), newScheme(t)) // discards errors that other tests have left
			op := kopf.New("test.example.org")
			tc.register(kopf.For(op, &Widget{}))
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// fakeLive provides a fixed object and stop reason to a background function.
type fakeLive struct {
	object   map[string]any
	stopping chan struct{}
	reason   error
}

func (l *fakeLive) Object() *jsontext.LazyObject { return jsontext.NewFromValue(l.object) }
func (l *fakeLive) Stopping() <-chan struct{}    { return l.stopping }
func (l *fakeLive) StopReason() error            { return l.reason }

// TestRun shows that a task sees the latest object and its stop reason, and that it can patch, return a result and
// post events.
func TestRun(t *testing.T) {
	op := kopf.New("test.example.org")
	object := body(map[string]any{"owner": "new"})
	l := &fakeLive{object: object, stopping: make(chan struct{}), reason: kopf.ErrUnmatched}
	close(l.stopping)
	kopf.For(op, &Widget{}).Daemon("d", func(_ context.Context, r *Run) error {
		<-r.Stopping()
		if r.Latest().Spec.Owner != "new" || r.ID != "d" || !errors.Is(r.StopReason(), kopf.ErrUnmatched) {
			t.Errorf("a task sees the latest object, its id and its stop reason: got %q, %q, %v",
				r.Latest().Spec.Owner, r.ID, r.StopReason())
		}
		l.object = nil
		if r.Latest().Spec.Owner != "old" {
			t.Errorf("a task of a deleted object sees the last state: got %q", r.Latest().Spec.Owner)
		}
		r.Patch(func(w *Widget) { w.Status.Host = "here" })
		r.SetResult(7)
		r.Info("Seen", "it")
		return nil
	})
	a := call(t, op, body(map[string]any{"owner": "old"}), nil, func(a *execution.Attempt) {
		a.Call.Cause, a.Call.LiveObject = &cause.Cause{Object: jsontext.NewFromValue(a.Call.Object)}, l
		a.Call.Object = nil // as the engine leaves it
	})
	if a.Outcome.Err != nil || a.ResultToWrite() != int64(7) || len(a.AllTransforms()) != 1 {
		t.Errorf("unexpected outcome %+v, result %v, %d patch functions", a.Outcome, a.ResultToWrite(),
			len(a.AllTransforms()))
	}
	if host, _, _ := unstructured.NestedString(a.Call.Object, "status", "host"); host != "here" {
		t.Errorf("the patch changes the copy that is written: got %v", a.Call.Object)
	}
}

// TestRunOfAnObjectThatDoesNotDecode shows that a daemon waits if its object no longer fits the Go type.
func TestRunOfAnObjectThatDoesNotDecode(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).Daemon("d", func(_ context.Context, r *Run) error { r.Latest(); return nil })
	a := call(t, op, body(nil), nil, func(a *execution.Attempt) {
		a.Call.Cause, a.Call.LiveObject = &cause.Cause{Object: jsontext.NewFromValue(a.Call.Object)}, &fakeLive{
			object: body(map[string]any{"size": "three"}),
		}
	})
	if !a.Outcome.Blocked {
		t.Errorf("the daemon waits until the object is repaired: got %+v", a.Outcome)
	}
}
