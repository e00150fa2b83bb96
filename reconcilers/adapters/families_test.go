package adapters_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestLoggingByFamily shows that the message and the level of an outcome depend on the family: frequent outcomes are
// logged at level 1.
func TestLoggingByFamily(t *testing.T) {
	awaited := progress.Wait{Child: "ConfigMap a", Until: time.Now().Add(time.Hour)}
	denied := apierrors.NewForbidden(schema.GroupResource{}, "x", errOrdinary)
	tests := map[string]struct {
		reason  string
		handler handlers.Handler
		outcome execution.Outcome
		msg     string
		level   any // nil is an error
	}{
		"StoppedDaemon": {
			"a daemon that is stopped with its object is logged at level 1",
			handlers.Handler{Family: handlers.Background},
			execution.Outcome{Aborted: true, Err: errOrdinary}, "Handler was stopped", 1.0,
		},
		"FailedDaemon": {
			"a failed daemon is logged as an error", handlers.Handler{Family: handlers.Background},
			execution.Outcome{Final: true, Err: errOrdinary}, "Handler failed permanently", nil,
		},
		"InterruptedActivity": {
			"an interrupted activity is logged without a retry, at level 0",
			handlers.Handler{Family: handlers.Activity},
			execution.Outcome{Aborted: true, Err: errOrdinary}, "Handler was interrupted", 0.0,
		},
		"Activity": {
			"an activity that succeeds is logged at level 0", handlers.Handler{Family: handlers.Activity},
			execution.Outcome{Final: true},
			"Handler succeeded", 0.0,
		},
		"Probe": {
			"a frequent activity that succeeds is logged at level 1",
			handlers.Handler{Family: handlers.Activity, IsFrequent: true},
			execution.Outcome{Final: true}, "Handler succeeded", 1.0,
		},
		"Event": {
			"an event handler that succeeds is logged at level 1", handlers.Handler{Family: handlers.Watching},
			execution.Outcome{Final: true},
			"Handler succeeded", 1.0,
		},
		"Pending": {
			"a wait for sub-handlers is logged at level 1", handlers.Handler{},
			execution.Outcome{Err: &execution.PendingError{Delay: time.Minute}},
			"Handler waits for its sub-handlers", 1.0,
		},
		"PendingFinally": {
			"a wait for sub-handlers that is given up is an error", handlers.Handler{},
			execution.Outcome{Final: true, Err: &execution.PendingError{}}, "Handler failed permanently", nil,
		},
		"Awaiting": {
			"a wait for a child is logged at level 0", handlers.Handler{},
			execution.Outcome{Err: &execution.PendingError{Wait: awaited}},
			"Handler waits for an object", 0.0,
		},
		"AwaitingFinally": {
			"a wait for a child that is given up is an error", handlers.Handler{},
			execution.Outcome{Final: true, Err: &execution.PendingError{Wait: awaited}},
			"Handler failed permanently", nil,
		},
		"NoObjection": {
			"an allowed request is logged at level 1", handlers.Handler{Family: handlers.Admitting},
			execution.Outcome{Final: true},
			"Handler has no objection", 1.0,
		},
		"Denied": {
			"a request that is denied by an API error is logged at level 0",
			handlers.Handler{Family: handlers.Admitting}, execution.AdmissionOutcome(denied),
			"Handler denies the request", 0.0,
		},
		"DeniedPermanently": {
			"a request that is denied by a permanent error is logged at level 0",
			handlers.Handler{Family: handlers.Admitting},
			execution.AdmissionOutcome(permanent{errOrdinary}), "Handler denies the request", 0.0,
		},
		"FailedReview": {
			"an admission handler that fails is logged as an error", handlers.Handler{Family: handlers.Admitting},
			execution.AdmissionOutcome(errOrdinary), "Handler failed; the request is denied", nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var lines []string
			log := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1})
			ctx, cancel := context.WithCancelCause(logf.IntoContext(t.Context(), log))
			cancel(execution.ErrDeleted)
			a := attemptOf(nil)
			tc.handler.ID = "fn"
			tc.handler.Call = func(context.Context, *handlers.Invocation) error { a.Outcome = tc.outcome; return nil }
			a.Call.Handler = &tc.handler
			attempt(ctx, t, adapters.ChainAdapters(calling(), adapters.Logging), a)
			line := lineOf(t, lines)
			if line["msg"] != tc.msg || line["level"] != tc.level {
				t.Errorf("%s: got %v at %v, want %q at %v", tc.reason, line["msg"], line["level"], tc.msg, tc.level)
			}
			if number, numbered := line["attempt"]; numbered && number != 1.0 {
				t.Errorf("the first attempt must be logged as number 1, got %v", number)
			}
			if _, err := json.Marshal(line); err != nil || line["handler"] != "fn" {
				t.Errorf("got %v, error %v", line, err)
			}
		})
	}
}

// TestEndsByFamily shows that an error of a background handler that was stopped is not a failure, but one of a change
// handler whose object is deleted is.
func TestEndsByFamily(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		family  handlers.Family
		cause   error
		aborted bool
	}{
		"DeletedDaemon": {"a daemon with an error after its object was deleted is aborted", handlers.Background,
			execution.ErrDeleted, true},
		"UnmatchedDaemon": {"a daemon with an error after its object stopped matching is aborted", handlers.Background,
			execution.ErrUnmatched, true},
		"RunningDaemon": {"a daemon with an error that was not stopped has failed", handlers.Background, nil, false},
		"Change": {"a change handler with an error during a deletion has failed", handlers.Changing,
			execution.ErrDeleted, false},
		"Exit": {"a change handler with an error during an exit is aborted", handlers.Changing,
			execution.ErrExiting, true},
		"Pause": {"a change handler with an error in a pause is aborted", handlers.Changing,
			execution.ErrPaused, true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if tc.cause != nil {
			cancel(tc.cause)
		}
		a := attemptOf(returning(errOrdinary))
		a.Call.Handler.Family = tc.family
		got := attempt(ctx, t, adapters.ChainAdapters(calling(), adapters.ErrorClasses), a)
		if cancel(nil); got.Aborted != tc.aborted || !errors.Is(got.Err, errOrdinary) {
			t.Errorf("%s: %s: got %+v", name, tc.reason, got)
		}
	}
}

func TestRunningEndsWithTheReasonOfThePass(t *testing.T) {
	for _, tc := range []struct{ of, want error }{
		{execution.ErrPaused, execution.ErrPaused}, {execution.ErrExiting, execution.ErrExiting},
		{nil, execution.ErrExiting},
	} {
		pass, end := context.WithCancelCause(t.Context())
		running, cancel := adapters.FunctionContext(pass)
		end(tc.of)
		<-running.Done()
		if got := context.Cause(running); !errors.Is(got, tc.want) {
			t.Errorf("the pass ended with %v and the function with %v, want %v", tc.of, got, tc.want)
		}
		cancel(nil)
	}
}

// subs are sub-handlers that count their runs and return an error.
type subs struct {
	runCount int
	err      error
}

func (d *subs) Declare(*handlers.Handler) error { return nil }

func (d *subs) Run(context.Context, *handlers.Lifecycle) error { d.runCount++; return d.err }

func (d *subs) RecordOf(string) (progress.Record, error) { return progress.Record{}, nil }

func TestSubHandlersRunAfterASuccess(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		own, sub error
		ran      int
		want     error
	}{
		{"sub-handlers do not run after an error of the function", errOrdinary, nil, 0, errOrdinary},
		{"sub-handlers run after a success of the function", nil, nil, 1, nil},
		{"an error of a sub-handler is returned", nil, errOrdinary, 1, errOrdinary},
	} {
		below, a := &subs{err: tc.sub}, attemptOf(returning(tc.own))
		a.Call.Subs = below
		_, err := adapters.ChainAdapters(calling(), adapters.SubHandlers).Reconcile(t.Context(), a)
		if below.runCount != tc.ran || !errors.Is(err, tc.want) {
			t.Errorf("%s: sub-handlers ran %d times, error %v", tc.reason, below.runCount, err)
		}
	}
}

// TestStopsAreReported shows that an attempt that is stopped before the function is called reports the reason.
func TestStopsAreReported(t *testing.T) {
	no := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	deletion := &handlers.AdmissionRequest{Operation: "DELETE"}
	for name, tc := range map[string]struct {
		reason   string
		handler  handlers.Handler
		asked    *handlers.AdmissionRequest
		selected bool
		lost     []string
		want     string
	}{
		"FirstFilter": {
			"a filter that does not match stops the attempt", handlers.Handler{Filters: []handlers.Filter{no}},
			nil, false, nil, string(execution.FilteredOut),
		},
		"OtherRequest": {
			"a request with another operation stops the attempt",
			handlers.Handler{Family: handlers.Admitting, Operations: []string{"CREATE"}},
			deletion,
			false, nil, string(execution.OtherRequest),
		},
		"SelectedBefore": {
			"a selected handler is not evaluated again",
			handlers.Handler{Family: handlers.Admitting, Operations: []string{"CREATE"}},
			deletion,
			true, nil, "",
		},
		"Lost": {
			"a handler after a failed one is not called, and fails permanently",
			handlers.Handler{After: []string{"other"}}, nil, true, []string{"other"},
			string(execution.DependencyFailed),
		},
		"NothingLost": {
			"a handler after a successful one is called", handlers.Handler{After: []string{"other"}}, nil, true, nil,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, called := attemptOf(nil), false
			tc.handler.ID = "fn"
			tc.handler.Call = func(context.Context, *handlers.Invocation) error { called = true; return nil }
			a.Call.Handler, a.Call.Admission, a.Selected, a.Account.FailedDependencies = &tc.handler, tc.asked,
				tc.selected, tc.lost
			attempt(t.Context(), t, adapters.New(&tc.handler, nil), a)
			if got := string(a.Stop.Reason); got != tc.want || called != (tc.want == "") {
				t.Errorf("%s: stopped by %q, want %q; called: %v", tc.reason, got, tc.want, called)
			}
			if tc.lost != nil && (!a.Outcome.Final || !execution.IsPermanent(a.Outcome.Err)) {
				t.Errorf("a handler that cannot be called any more must fail permanently: %+v", a.Outcome)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	broken := func(context.Context, *cause.Cause) (bool, error) { return false, errOrdinary }
	no := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	deletion := func(f ...handlers.Filter) *handlers.Handler {
		return &handlers.Handler{ID: "d", Reason: cause.Delete, Filters: f}
	}
	daemon := func(f ...handlers.Filter) *handlers.Handler {
		return &handlers.Handler{ID: "s", Family: handlers.Background, Filters: f}
	}
	for name, tc := range map[string]struct {
		reason string
		all    []*handlers.Handler
		want   bool
		fails  bool
	}{
		"Nothing":  {"without handlers, the object is not held", nil, false, false},
		"Deletion": {"a deletion handler holds the object", []*handlers.Handler{deletion()}, true, false},
		"Other": {"handlers that do not match do not hold the object",
			[]*handlers.Handler{deletion(no), daemon(no)}, false, false},
		"Daemon": {"a daemon holds the object until it is stopped", []*handlers.Handler{deletion(no), daemon()},
			true, false},
		"Broken": {"a deletion handler's filter that fails is an error",
			[]*handlers.Handler{deletion(broken), daemon()}, false, true},
		"BrokenDaemon": {"a daemon's filter that fails is an error", []*handlers.Handler{daemon(broken)}, false, true},
	} {
		all := adapters.Families{Changing: of(handlers.Changing, tc.all), Background: of(handlers.Background, tc.all)}
		got, err := adapters.AnyHolds(t.Context(), all, &cause.Cause{Object: jsontext.NewFromValue(object{})})
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %s: got %v, error %v", name, tc.reason, got, err)
		}
	}
}
