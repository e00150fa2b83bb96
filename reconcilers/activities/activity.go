package activities

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// The activities, by their names. Kopf: Activity, where a login is an authentication.
const (
	Startup = "startup"
	Cleanup = "cleanup"
	Login   = "login"
	Probe   = "probe"
)

// Grace is how long a handler may go on when its context has ended, before it is abandoned.
const Grace = 5 * time.Second

// Activity is a list of handlers that are called for the operator as a whole.
type Activity struct {
	// Name is one of those above.
	Name string
	// Handlers are those of the activity, in the order of registration.
	Handlers []*adapters.Handler
	// Backoff is the default delay after ordinary errors; zero is execution.DefaultBackoff, negative is none.
	Backoff time.Duration

	progress *progress // nil is told nothing
}

// running is one run of an activity.
type running struct {
	activity Activity
	steps    []*step
}

// step is one handler in a run.
type step struct {
	handler *adapters.Handler
	account execution.Account
	err     error // of the last attempt
	failed  bool
	result  any
}

// Run calls the handlers one after another, in their order; then, after the nearest of their delays, those again that
// are due, until all are finished. The results are those that are not nil, by the ids of the handlers.
//
// # Errors
//
// The activity has failed if any of its handlers has. When the context ends first, the error is an [InterruptedError]:
// no handler is called any more then, and the attempt that is running does not count. A context that ends without a
// cause of its own ends the functions' with execution.ErrExiting as theirs.
func (a Activity) Run(ctx context.Context) (map[string]any, error) {
	deadline, limited := ctx.Deadline()
	ctx, stop := withCause(ctx)
	defer stop()
	r, now := &running{activity: a}, time.Now()
	for _, h := range a.Handlers {
		r.steps = append(r.steps, &step{handler: h, account: execution.Account{Started: now}})
	}
	for len(r.steps) > 0 {
		if err := r.round(ctx); err != nil {
			return nil, err
		}
		if len(r.unfinished()) == 0 {
			break
		}
		if delay := r.next(); limited && time.Until(deadline) < delay || !sleep(ctx, delay) {
			return nil, r.interrupted(ctx, "")
		}
	}
	if err := r.failure(); err != nil {
		return nil, err
	}
	return r.results(), nil
}

// round calls the handlers that are due when it begins.
func (r *running) round(ctx context.Context) error {
	now := time.Now()
	for _, s := range r.unfinished() {
		if s.account.Until.After(now) {
			continue
		}
		if ctx.Err() != nil {
			return r.interrupted(ctx, "")
		}
		if !r.attempt(ctx, s) {
			return r.interrupted(ctx, s.id())
		}
	}
	return nil
}

// attempt calls one handler. It returns false if the function is abandoned.
func (r *running) attempt(ctx context.Context, s *step) bool {
	r.activity.progress.enter(s.id())
	a := execution.New(s.handler.Description, &cause.Cause{Reason: cause.Reason(r.activity.Name)}, nil)
	a.Account, a.Limits.Backoff = s.account, r.activity.Backoff
	ends, cancel := s.limited(ctx)
	defer cancel()
	if !r.wait(ends, s.handler.Start(ctx, a)) {
		return false
	}
	s.conclude(a)
	r.activity.progress.leave(s.err)
	return true
}

// limited is a context that ends with the handler's timeout as well. What is called often is not abandoned for that:
// the next run would call it again, while it is still running.
func (s *step) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	h := s.handler.Description
	if h.Policy.Timeout == nil || h.Often {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, s.account.Started.Add(*h.Policy.Timeout))
}

// wait returns false if the function does not end in time once its context has ended.
func (r *running) wait(ends context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ends.Done():
	}
	timer := time.NewTimer(Grace)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// conclude takes what came of an attempt into account.
func (s *step) conclude(a *execution.Attempt) {
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
	if o.Final && o.Err == nil && o.Ignored == nil {
		s.result = a.Returned
	}
}

func (s *step) id() string { return s.handler.Description.ID }

// unfinished are the steps that are neither done nor failed.
func (r *running) unfinished() (rest []*step) {
	for _, s := range r.steps {
		if !s.account.Finished {
			rest = append(rest, s)
		}
	}
	return rest
}

// next is how long the nearest of the unfinished handlers sleeps.
func (r *running) next() (nearest time.Duration) {
	for i, s := range r.unfinished() {
		if left := time.Until(s.account.Until); i == 0 || left < nearest {
			nearest = left
		}
	}
	return max(0, nearest)
}

func (r *running) results() map[string]any {
	results := map[string]any{}
	for _, s := range r.steps {
		if s.result != nil {
			results[s.id()] = s.result
		}
	}
	return results
}

// withCause is a context that ends with a cause that functions know.
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

// sleep returns false if the context ends before the delay is over.
func sleep(ctx context.Context, delay time.Duration) bool {
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
