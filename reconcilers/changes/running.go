package changes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// ErrDeleted is the cancellation cause of a function whose object is gone, or is another one under the same name.
var ErrDeleted = execution.ErrDeleted

// longestCheckpoint is how long at most to wait for another try after checkpoints that could not be written.
const longestCheckpoint = time.Minute

var errEnded = errors.New("the attempt has ended: nothing can be flushed any more")

// runner calls handlers of one cause, each on a copy of the object with the changes of those before it.
type runner struct {
	pass     *pass
	outcomes *outcomes
	working  map[string]any   // the object as the next handler is to see it
	given    *jsontext.Object // the same with its text; nil as soon as a handler has changed it
	essence  diffbase.Essence // of working; nil if it is not built
	budget   *budget          // for the progress of sub-handlers; nil as long as there are none
}

// invocation is one function running, and the pass waiting for it: for its end, for the moment at which former
// outcomes must be written, for its own wish to write, and for the exit of the operator.
type invocation struct {
	runner   *runner
	handler  *adapters.Handler
	attempt  *execution.Attempt
	interval time.Duration // how long outcomes wait; longer if writes fail
	cancel   context.CancelCauseFunc
	log      logr.Logger   // that of the pass: each call adds the names of its handler
	requests chan func()   // what the function's goroutine wants to be done on ours
	over     chan struct{} // closed when nobody waits for them any more

	mu      sync.Mutex
	written map[string]any // the object as the pass knows it by now
}

// callDueHandlers calls the handlers that are due, as the lifecycle picks them.
func (p *pass) callDueHandlers(ctx context.Context, selected []*adapters.Handler) error {
	r := &runner{pass: p, outcomes: p.outcomes, working: p.object.body, given: p.object.opened}
	if p.object.foreign == nil {
		r.essence = p.outcomes.cause.New
	}
	for _, a := range p.outcomes.attempts {
		r.adopt(a, a.Remembered())
	}
	due, err := r.due(ctx, selected)
	if err != nil {
		return err
	}
	picked, err := execution.Pick(ctx, p.handling.Lifecycle, due)
	if err != nil {
		return err
	}
	p.noteLook(selected, due, picked)
	for _, state := range picked {
		if p.interrupted(ctx) {
			break
		}
		at := slices.IndexFunc(selected, func(h *adapters.Handler) bool { return h.Description.ID == state.ID })
		call := &invocation{
			runner: r, handler: selected[at], attempt: r.attempt(selected[at], state, r.working, r.given),
			written: p.object.body,
		}
		before, then := r.working, r.essence
		if err := call.run(ctx); err != nil || p.object.gone {
			return err
		}
		if p.own != nil {
			p.noteOwnCall(r, call.attempt, before, then)
		}
	}
	if p.own != nil {
		p.countLoop(ctx)
	}
	return nil
}

// noteLook has the journal know what was decided before anybody is called, which may take long.
func (p *pass) noteLook(selected []*adapters.Handler, due, picked []*execution.HandlerState) {
	if p.look == nil {
		return
	}
	for _, h := range selected {
		is := func(state *execution.HandlerState) bool { return state.ID == h.Description.ID }
		if slices.ContainsFunc(due, is) && !slices.ContainsFunc(picked, is) {
			p.look.Verdict(h.Description, execution.Stop{By: "Lifecycle", Why: execution.NotPicked})
		}
	}
	p.look.Note()
}

// due are the states of the handlers that may be called now, each once, in the order of registration.
func (r *runner) due(ctx context.Context, selected []*adapters.Handler) (due []*execution.HandlerState, err error) {
	for _, handler := range selected {
		state := r.outcomes.state.Handler(handler.Description.ID)
		ok, err := handler.IsDue(ctx, state.Account(), r.pass.handling.Now, r.pass.look.Teller())
		if err != nil {
			return nil, err
		}
		if ok && !slices.Contains(due, state) {
			due = append(due, state)
		}
	}
	return due, nil
}

// interrupted tells whether the remaining handlers must wait: for the next process, or for the deletion that our own
// write has brought to light.
func (p *pass) interrupted(ctx context.Context) bool {
	p.exiting = p.exiting || !p.handling.MayBegin(ctx)
	return p.exiting || !p.outcomes.cause.Deleting && patching.BeingDeleted(p.object.body)
}

// attempt is a call to be made on a copy of the object, which continues what is known of the handler. An object that is
// given as a text, too, is copied when the function asks for it: most of them decode it into a type of their own.
func (r *runner) attempt(
	handler *adapters.Handler, state *execution.HandlerState, object map[string]any, given *jsontext.Object,
) *execution.Attempt {
	h := r.pass.handling
	if given.Encoded() {
		object = nil
	}
	a := h.NewAttempt(handler.Description, r.outcomes.cause, object)
	a.Now, a.Account, a.Due, a.Deferred = h.Now, state.Account(), true, true
	a.Call.Given = given
	return a
}

// conclude takes the outcome of an attempt into account. The handlers after it see what it did.
func (r *runner) conclude(a *execution.Attempt) error {
	r.pass.noted().Attempt(a)
	if r.pass.object.gone {
		a.Decide()
		return nil
	}
	if err := r.outcomes.conclude(a, r.pass.handling.Now()); err != nil {
		return err
	}
	if r.pass.handling.Waits != nil {
		r.pass.noteWait(a)
	}
	r.adopt(a, a.Made())
	return nil
}

// adopt shows the handlers after it what an attempt did to the object. A function that does not fit it will be judged
// when it is written; here it changes nothing.
func (r *runner) adopt(a *execution.Attempt, transforms []patching.Transform) {
	patch := patching.Patch{Transforms: patching.Contained(transforms)}
	if err := patch.AddResult(a.Call.Handler.ID, a.Result(), a.Call.Handler.FormerIDs...); err != nil || patch.Empty() {
		return
	}
	if changed, err := patch.ApplyTo(r.working); err == nil {
		r.working, r.given, r.essence = changed, nil, nil
		r.outcomes.working = changed
	}
}

func (i *invocation) run(ctx context.Context) error {
	pass := i.runner.pass
	i.requests, i.over = make(chan func()), make(chan struct{})
	defer close(i.over)
	i.interval = pass.handling.Checkpoint
	running, cancel := adapters.Running(ctx) // it ends apart from the loop below, which may be busy with a write
	defer cancel(nil)
	i.cancel, i.log = cancel, logf.FromContext(ctx)
	i.prepare(i.handler, i.attempt, nil)
	i.wait(ctx, i.handler.Start(running, i.attempt))
	pass.exiting = pass.exiting || !pass.handling.MayBegin(ctx) // the function may have noticed it first
	return i.runner.conclude(i.attempt)
}

// prepare gives a call what it needs to write, and to run sub-handlers.
func (i *invocation) prepare(handler *adapters.Handler, a *execution.Attempt, ancestors []string) {
	a.Call.Subs = &subHandlers{
		invocation: i, runner: i.runner, handler: handler, parent: a,
		ancestors: append(slices.Clip(ancestors), handler.Description.ID),
	}
	a.Call.Newest = i
	a.FlushNow = func(ctx context.Context) error { return i.flushNow(ctx, a) }
}

func (i *invocation) wait(ctx context.Context, done <-chan struct{}) {
	exit := ctx.Done()
	due, stopTimer := i.checkpointTimer()
	defer func() { stopTimer() }()
	for {
		select {
		case <-done:
			return
		case <-due:
			i.writeCheckpoint(ctx)
		case act := <-i.requests:
			act()
		case <-exit:
			exit, i.runner.pass.exiting = nil, true
			i.writeCheckpoint(ctx)
		}
		stopTimer()
		due, stopTimer = i.checkpointTimer()
	}
}

// checkpointTimer fires when the oldest outcome must be written; never, if none waits.
func (i *invocation) checkpointTimer() (<-chan time.Time, func() bool) {
	pending := i.runner.outcomes.pending
	if pending.IsZero() || i.runner.pass.object.gone {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(max(0, i.interval-i.runner.pass.handling.Now().Sub(pending)))
	return timer.C, timer.Stop
}

// writeCheckpoint saves the outcomes of former handlers while another one is running. If that fails, the handler is
// not disturbed: the last write of the pass takes it all, or fails visibly.
func (i *invocation) writeCheckpoint(ctx context.Context) {
	pass, handled := i.runner.pass, i.runner.outcomes
	if handled.pending.IsZero() || pass.object.gone {
		return
	}
	if err := pass.save(ctx, handled); err != nil {
		logf.FromContext(ctx).Error(err, "Failed to write progress while a handler is running; retrying later")
		handled.pending, i.interval = pass.handling.Now(), min(2*i.interval, longestCheckpoint)
	}
	i.noteWritten()
	if pass.object.gone {
		i.cancel(ErrDeleted)
	}
}

// onPass runs act on the goroutine of the pass, which waits for the function; it is called on the function's goroutine.
// It returns errEnded if the function has returned meanwhile.
func (i *invocation) onPass(act func() error) (err error) {
	finished := make(chan struct{})
	select {
	case i.requests <- func() { defer close(finished); err = act(); i.noteWritten() }:
		<-finished
		return err
	case <-i.over:
		return errEnded
	}
}

// flushNow runs on the function's goroutine: the pass does the writing, so that nothing is written twice.
func (i *invocation) flushNow(ctx context.Context, a *execution.Attempt) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// What is written may be of others, while the logger in the context is that of this function.
	return i.onPass(func() error { return i.flush(logf.IntoContext(ctx, i.log), a) })
}

// flush writes what the running function has remembered so far, together with all that waits. If that is refused, those
// before it are judged without it; it is told, and keeps what it remembered: the judgement is at its end.
func (i *invocation) flush(ctx context.Context, a *execution.Attempt) error {
	pass, handled := i.runner.pass, i.runner.outcomes
	if pass.object.gone {
		return ErrDeleted
	}
	err := pass.saveOnce(ctx, handled, true, a)
	if patching.ContentRefused(err) && len(handled.attempts) > 0 {
		if err = pass.save(ctx, handled); err == nil && !pass.object.gone {
			err = pass.saveOnce(ctx, handled, true, a)
		}
	}
	if pass.object.gone {
		i.cancel(ErrDeleted)
		return ErrDeleted
	}
	if err == nil {
		err = pass.object.refusal // the rest is written, but the function was promised all
	}
	return err
}

// Run calls those that are due, as the lifecycle picks them. Those that do not match are not waited for; those that are
// finished are not called again.
func (s *subHandlers) Run(ctx context.Context, lifecycle *handlers.Lifecycle) error {
	declared, err := s.begin()
	if err != nil || len(declared) == 0 {
		return err
	}
	defer s.end()
	run := &subRun{subs: s, lifecycle: s.runner.pass.handling.Lifecycle}
	if lifecycle != nil {
		run.lifecycle = *lifecycle
	}
	if err := run.restore(ctx, declared); err != nil {
		return err
	}
	return run.callDue(ctx)
}

// begin gives what is to be run. Nothing is locked meanwhile: a sub-handler that declares something for its parent by
// mistake must not wait for ever.
func (s *subHandlers) begin() ([]*adapters.Handler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return nil, errRunning
	}
	s.running, s.remeasured = len(s.declared) > 0, false
	return slices.Clone(s.declared), nil
}

func (s *subHandlers) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}
