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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// What is worth a line, and at which level, depends on how often it happens, and on who would be called again.
func TestLoggingByFamily(t *testing.T) {
	awaited := progress.Wait{Child: "ConfigMap a", Until: time.Now().Add(time.Hour)}
	denied := apierrors.NewForbidden(schema.GroupResource{}, "x", errBoo)
	tests := map[string]struct {
		reason  string
		handler handlers.Handler
		outcome execution.Outcome
		msg     string
		level   any // nil is an error
	}{
		"StoppedDaemon": {
			"it has to end with its object", handlers.Handler{Family: handlers.Spawning},
			execution.Outcome{Aborted: true, Err: errBoo}, "Handler was stopped", 1.0,
		},
		"FailedDaemon": {
			"errors are errors everywhere", handlers.Handler{Family: handlers.Spawning},
			execution.Outcome{Final: true, Err: errBoo}, "Handler failed permanently", nil,
		},
		"InterruptedActivity": {
			"nobody calls it again", handlers.Handler{Family: handlers.Acting},
			execution.Outcome{Aborted: true, Err: errBoo}, "Handler was interrupted", 0.0,
		},
		"Activity": {
			"it happens once", handlers.Handler{Family: handlers.Acting}, execution.Outcome{Final: true},
			"Handler succeeded", 0.0,
		},
		"Probe": {
			"it happens every few seconds", handlers.Handler{Family: handlers.Acting, Often: true},
			execution.Outcome{Final: true}, "Handler succeeded", 1.0,
		},
		"Event": {
			"there may be any number", handlers.Handler{Family: handlers.Watching}, execution.Outcome{Final: true},
			"Handler succeeded", 1.0,
		},
		"Pending": {
			"others tell of themselves", handlers.Handler{},
			execution.Outcome{Err: &execution.PendingError{Delay: time.Minute}},
			"Handler waits for its sub-handlers", 1.0,
		},
		"PendingForGood": {
			"it will not wait any more", handlers.Handler{},
			execution.Outcome{Final: true, Err: &execution.PendingError{}}, "Handler failed permanently", nil,
		},
		"Awaiting": {
			"the child is known", handlers.Handler{}, execution.Outcome{Err: &execution.PendingError{Awaited: awaited}},
			"Handler waits for an object", 0.0,
		},
		"AwaitingForGood": {
			"the time is over", handlers.Handler{},
			execution.Outcome{Final: true, Err: &execution.PendingError{Awaited: awaited}},
			"Handler failed permanently", nil,
		},
		"NoObjection": {
			"most requests are fine", handlers.Handler{Family: handlers.Admitting}, execution.Outcome{Final: true},
			"Handler has no objection", 1.0,
		},
		"Denied": {
			"it is meant", handlers.Handler{Family: handlers.Admitting}, execution.Verdict(denied),
			"Handler denies the request", 0.0,
		},
		"DeniedForGood": {
			"so is this", handlers.Handler{Family: handlers.Admitting},
			execution.Verdict(permanent{errBoo}), "Handler denies the request", 0.0,
		},
		"FailedReview": {
			"it is not meant", handlers.Handler{Family: handlers.Admitting},
			execution.Verdict(errBoo), "Handler failed; the request is denied", nil,
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
			attempt(ctx, t, adapters.Chain(calling(), adapters.Logging), a)
			line := lineOf(t, lines)
			if line["msg"] != tc.msg || line["level"] != tc.level {
				t.Errorf("%s: got %v at %v, want %q at %v", tc.reason, line["msg"], line["level"], tc.msg, tc.level)
			}
			if number, numbered := line["attempt"]; numbered && number != 1.0 {
				t.Errorf("the first attempt is number %v", number)
			}
			if _, err := json.Marshal(line); err != nil || line["handler"] != "fn" {
				t.Errorf("got %v, error %v", line, err)
			}
		})
	}
}

// Who is cancelled in the background because it must end has not failed; who serves a change has to be done with it.
func TestEndsByFamily(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		family  handlers.Family
		cause   error
		aborted bool
	}{
		"DeletedDaemon":   {"its object goes", handlers.Spawning, execution.ErrDeleted, true},
		"UnmatchedDaemon": {"its object is no matter of its any more", handlers.Spawning, execution.ErrUnmatched, true},
		"RunningDaemon":   {"nobody has asked it to end", handlers.Spawning, nil, false},
		"Change":          {"its object goes, and waits for it", handlers.Changing, execution.ErrDeleted, false},
		"Exit":            {"it is called again", handlers.Changing, execution.ErrExiting, true},
		"Pause":           {"it is called again", handlers.Changing, execution.ErrPaused, true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if tc.cause != nil {
			cancel(tc.cause)
		}
		a := attemptOf(returning(errBoo))
		a.Call.Handler.Family = tc.family
		got := attempt(ctx, t, adapters.Chain(calling(), adapters.ErrorClasses), a)
		if cancel(nil); got.Aborted != tc.aborted || !errors.Is(got.Err, errBoo) {
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
		running, cancel := adapters.Running(pass)
		end(tc.of)
		<-running.Done()
		if got := context.Cause(running); !errors.Is(got, tc.want) {
			t.Errorf("the pass ended for %v, and the function for %v, want %v", tc.of, got, tc.want)
		}
		cancel(nil)
	}
}

// subs are sub-handlers, and what comes of them.
type subs struct {
	ran int
	err error
}

func (d *subs) Declare(*handlers.Handler) error { return nil }

func (d *subs) Run(context.Context, *handlers.Lifecycle) error { d.ran++; return d.err }

func (d *subs) Record(string) (progress.Record, error) { return progress.Record{}, nil }

func TestSubHandlersRunAfterASuccess(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		own, sub error
		ran      int
		want     error
	}{
		{"what has failed is called again, and declares them again", errBoo, nil, 0, errBoo},
		{"they run", nil, nil, 1, nil},
		{"their error is that of the function", nil, errBoo, 1, errBoo},
	} {
		below, a := &subs{err: tc.sub}, attemptOf(returning(tc.own))
		a.Call.Subs = below
		_, err := adapters.Chain(calling(), adapters.SubHandlers).Reconcile(t.Context(), a)
		if below.ran != tc.ran || !errors.Is(err, tc.want) {
			t.Errorf("%s: they ran %d times, error %v", tc.reason, below.ran, err)
		}
	}
}

// What stops an attempt before the function is told, with what it has found.
func TestStopsAreTold(t *testing.T) {
	no := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	deletion := &handlers.Admission{Operation: "DELETE"}
	for name, tc := range map[string]struct {
		reason   string
		handler  handlers.Handler
		asked    *handlers.Admission
		selected bool
		lost     []string
		want     string
	}{
		"FirstFilter": {
			"its number is told", handlers.Handler{Filters: []handlers.Filter{no}},
			nil, false, nil, string(execution.FilteredOut),
		},
		"OtherRequest": {
			"it is for creations", handlers.Handler{Family: handlers.Admitting, Operations: []string{"CREATE"}},
			deletion,
			false, nil, string(execution.OtherRequest),
		},
		"SelectedBefore": {
			"it was asked already", handlers.Handler{Family: handlers.Admitting, Operations: []string{"CREATE"}},
			deletion,
			true, nil, "",
		},
		"Lost": {
			"it comes after what has failed", handlers.Handler{After: []string{"other"}}, nil, true, []string{"other"},
			string(execution.Missed),
		},
		"NothingLost": {
			"it comes after what has succeeded", handlers.Handler{After: []string{"other"}}, nil, true, nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, called := attemptOf(nil), false
			tc.handler.ID = "fn"
			tc.handler.Call = func(context.Context, *handlers.Invocation) error { called = true; return nil }
			a.Call.Handler, a.Call.Admission, a.Selected, a.Account.Lost = &tc.handler, tc.asked, tc.selected, tc.lost
			attempt(t.Context(), t, adapters.New(&tc.handler, nil), a)
			if got := string(a.Stopped.Why); got != tc.want || called != (tc.want == "") {
				t.Errorf("%s: stopped by %q, want %q; called: %v", tc.reason, got, tc.want, called)
			}
			if tc.lost != nil && (!a.Outcome.Final || !execution.IsPermanent(a.Outcome.Err)) {
				t.Errorf("what cannot be called any more failed permanently: %+v", a.Outcome)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	broken := func(context.Context, *cause.Cause) (bool, error) { return false, errBoo }
	no := func(context.Context, *cause.Cause) (bool, error) { return false, nil }
	deletion := func(f ...handlers.Filter) *handlers.Handler {
		return &handlers.Handler{ID: "d", Reason: cause.Delete, Filters: f}
	}
	daemon := func(f ...handlers.Filter) *handlers.Handler {
		return &handlers.Handler{ID: "s", Family: handlers.Spawning, Filters: f}
	}
	for name, tc := range map[string]struct {
		reason string
		all    []*handlers.Handler
		want   bool
		fails  bool
	}{
		"Nothing":      {"nobody asks for it", nil, false, false},
		"Deletion":     {"it is to be called", []*handlers.Handler{deletion()}, true, false},
		"Other":        {"it is not for this object", []*handlers.Handler{deletion(no), daemon(no)}, false, false},
		"Daemon":       {"it is to be stopped first", []*handlers.Handler{deletion(no), daemon()}, true, false},
		"Broken":       {"nobody knows", []*handlers.Handler{deletion(broken), daemon()}, false, true},
		"BrokenDaemon": {"nobody knows", []*handlers.Handler{daemon(broken)}, false, true},
	} {
		all := adapters.Families{Changing: of(handlers.Changing, tc.all), Spawning: of(handlers.Spawning, tc.all)}
		got, err := adapters.Holds(t.Context(), all, &cause.Cause{Object: jsontext.Of(object{})})
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %s: got %v, error %v", name, tc.reason, got, err)
		}
	}
}
