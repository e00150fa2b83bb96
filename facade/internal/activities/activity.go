package activities

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// The names of the activities. Kopf: Activity, whose AUTHENTICATION is a Login here.
const (
	Startup = "startup"
	Cleanup = "cleanup"
	Login   = "login"
	Probe   = "probe"
)

// GracePeriod is how long a handler may continue after the end of its context. After that, it is abandoned.
const GracePeriod = 5 * time.Second

// ActivityHandlers is a list of handlers that are called for the operator as a whole, with its retries in memory.
type ActivityHandlers struct {
	// Name is one of the constants above.
	Name string
	// Handlers are the handlers of the activity, in the order of registration.
	Handlers []*adapters.HandlerChain
	// Backoff is the default delay after ordinary errors; zero is execution.DefaultBackoff, negative means no delay.
	Backoff time.Duration

	progress *progress // the handler that is being called, for probings; nil records nothing
}

// activityRun is one run of an activity. It keeps all progress, as there is no object to store it on.
type activityRun struct {
	activity ActivityHandlers
	steps    []*step
}

// step is the progress of one handler in a run.
type step struct {
	handler *adapters.HandlerChain
	account execution.Account
	err     error // of the last attempt
	failed  bool  // permanently: err is final
	result  any   // of the function, set after a success only
}

// Run calls the handlers one after another, in their order. After the shortest of their delays, it calls those that are
// due again, until all are finished. It returns the results that are not nil, by handler id.
//
// # Errors
//
// Run returns the joined errors if any handler has failed permanently; the other handlers are still called. If the
// context ends first, it returns an [InterruptedError]: no further handler is called, and the running attempt does not
// count. If the context has no cause of its own, the contexts of the functions get the cause execution.ErrExiting.
func (a ActivityHandlers) Run(ctx context.Context) (map[string]any, error) {
	deadline, limited := ctx.Deadline()
	ctx, stop := withCause(ctx)
	defer stop()
	r, now := &activityRun{activity: a}, time.Now()
	// All handlers have the same start, so their timeouts include the time of the handlers before them.
	for _, h := range a.Handlers {
		r.steps = append(r.steps, &step{handler: h, account: execution.Account{Started: now}})
	}
	for len(r.steps) > 0 {
		if err := r.callDueHandlers(ctx); err != nil {
			return nil, err
		}
		if len(r.unfinishedSteps()) == 0 {
			break
		}
		// Do not wait for a deadline that ends before the next attempt: the result would be the same, only later.
		if delay := r.nextDelay(); limited && time.Until(deadline) < delay || !sleepFor(ctx, delay) {
			return nil, r.interruptedError(ctx, "")
		}
	}
	if err := r.joinFailures(); err != nil {
		return nil, err
	}
	return r.collectResults(), nil
}

// callDueHandlers calls the unfinished handlers that were due when the round began.
func (r *activityRun) callDueHandlers(ctx context.Context) error {
	now := time.Now()
	for _, s := range r.unfinishedSteps() {
		if s.account.Until.After(now) {
			// The context may have ended during the former handler.
			continue
		}
		if ctx.Err() != nil {
			return r.interruptedError(ctx, "")
		}
		if !r.callHandler(ctx, s) {
			return r.interruptedError(ctx, s.handlerID())
		}
	}
	return nil
}

// callHandler calls one handler and records its outcome. It returns false if the function was abandoned.
func (r *activityRun) callHandler(ctx context.Context, s *step) bool {
	r.activity.progress.recordStart(s.handlerID())
	a := execution.NewAttempt(s.handler.Description, &cause.Cause{Reason: cause.Reason(r.activity.Name)}, nil)
	a.Account, a.Limits.Backoff = s.account, r.activity.Backoff
	// Only the waiting is limited here; the handler's Deadline adapter cancels the function itself.
	ends, cancel := s.withTimeout(ctx)
	defer cancel()
	if !r.awaitReturn(ends, s.handler.Start(ctx, a)) {
		return false
	}
	s.recordOutcome(a)
	r.activity.progress.recordReturn(s.err)
	return true
}

// withTimeout returns a context that ends also at the handler's timeout, if there is one. Handlers that are called
// often, such as probes, are not abandoned at their timeout: the next run would call them again while they are still
// running.
func (s *step) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	h := s.handler.Description
	if h.Policy.Timeout == nil || h.IsFrequent {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, s.account.Started.Add(*h.Policy.Timeout))
}

// awaitReturn waits for the end of the function. It returns false if the function continues for longer than Grace after
// the end of the context.
func (r *activityRun) awaitReturn(ends context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ends.Done():
	}
	timer := time.NewTimer(GracePeriod)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// recordOutcome adds the outcome of an attempt to the progress of the handler. An aborted attempt does not count.
func (s *step) recordOutcome(a *execution.Attempt) {
	o := a.Outcome
	if o.Aborted {
		return
	}
	s.account.Retries++
	s.account.Trace = o.Trace
	s.err, s.account.Finished, s.failed = o.Err, o.Final, o.Final && o.Err != nil
	if o.Delay != nil {
		s.account.Until = time.Now().Add(*o.Delay)
	}
	// An ignored error counts as a success, but without a result.
	if o.Final && o.Err == nil && o.Ignored == nil {
		s.result = a.ActivityResult
	}
}

// handlerID returns the id of the step's handler.
func (s *step) handlerID() string { return s.handler.Description.ID }

// unfinishedSteps returns the steps that have neither succeeded nor failed.
func (r *activityRun) unfinishedSteps() (rest []*step) {
	for _, s := range r.steps {
		if !s.account.Finished {
			rest = append(rest, s)
		}
	}
	return rest
}

// nextDelay returns the time until the first unfinished handler is due; zero if one is due already.
func (r *activityRun) nextDelay() (nearest time.Duration) {
	for i, s := range r.unfinishedSteps() {
		if left := time.Until(s.account.Until); i == 0 || left < nearest {
			nearest = left
		}
	}
	return max(0, nearest)
}

// collectResults returns the results that are not nil, by handler id.
func (r *activityRun) collectResults() map[string]any {
	results := map[string]any{}
	for _, s := range r.steps {
		if s.result != nil {
			results[s.handlerID()] = s.result
		}
	}
	return results
}

// withCause returns a context that ends together with ctx, and always with a cause that handlers can distinguish. A
// context without a cause of its own gets execution.ErrExiting.
func withCause(ctx context.Context) (context.Context, context.CancelFunc) {
	known, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if why := context.Cause(ctx); why != ctx.Err() { //nolint:errorlint // only the very same one is no cause
			end(why)
			return
		}
		end(execution.ErrExiting)
	})
	return known, func() { stop(); end(nil) }
}

// sleepFor waits for the delay. It returns false if the context ends first.
func sleepFor(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
