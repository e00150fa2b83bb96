package background

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// goneDelay is for an object that is not in the cache: soon somebody tells that it is gone.
const goneDelay = time.Second

// attempt calls the function once, and writes what it wants to be written.
func (k *task) attempt(ctx context.Context) execution.Outcome {
	settings, _ := k.crew.current()
	k.mu.Lock()
	body := k.latest()
	k.mu.Unlock()
	if body == nil {
		delay := goneDelay
		return execution.Outcome{Aborted: true, Err: execution.ErrDeleted, Delay: &delay}
	}
	a := execution.New(k.handler.Description, &cause.Cause{Body: body}, nil)
	a.Account = execution.Account{Retries: k.retries, Started: k.started}
	a.Limits.Backoff, a.Call.Events, a.Call.Live = settings.Backoff, settings.Events, live{k}
	a.FlushNow = func(ctx context.Context) error { return k.write(ctx, a) }
	k.handler.Run(ctx, a)
	k.deliver(ctx, a)
	return a.Outcome
}

// deliver writes until that has worked, or nobody wants it any more: the object is gone, or refuses it.
func (k *task) deliver(ctx context.Context, a *execution.Attempt) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := k.write(ctx, a)
		if err == nil {
			return
		}
		if errors.Is(err, execution.ErrDeleted) {
			return
		}
		if patching.Hopeless(err) || k.isStopping() {
			k.fault(ctx, err, "What the handler wrote is lost")
			return
		}
		k.fault(ctx, err, "What the handler wrote cannot be written now; it will be tried again")
		k.sleep(pause)
	}
}

// write sends what is remembered, and the result of an attempt that has ended.
func (k *task) write(ctx context.Context, a *execution.Attempt) error {
	k.writing <- struct{}{}
	defer func() { <-k.writing }()
	settings, _ := k.crew.current()
	remembered := a.Remembered()
	patch := patching.Patch{Transforms: patching.Contained(remembered)}
	if err := patch.AddResult(k.handler.Description.ID, a.Result()); err != nil {
		return err
	}
	k.mu.Lock()
	body := k.latest()
	k.mu.Unlock()
	switch {
	case patch.Empty():
		return nil
	case body == nil:
		return execution.ErrDeleted
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settings.WriteTimeout)
	defer cancel()
	result, err := settings.Writer.ApplyRetrying(
		ctx, patching.Target{Body: body, StatusSubresource: settings.StatusSubresource}, patch, nil,
	)
	if err == nil {
		a.Written(len(remembered))
		err = result.StatusRefused
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if result.Body != nil && !result.Released && !result.Gone && (k.written == nil || older(k.written, result.Body)) {
		k.written = result.Body
	}
	return err
}

// live is what a running function sees of its object.
type live struct{ *task }

// Object is the newest state.
func (l live) Object() map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest()
}

// Stopping is closed when the function has to end.
func (l live) Stopping() <-chan struct{} { return l.stopping }

// StopReason is why; nil before.
func (l live) StopReason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason.Err()
}

// Flags are the reason as Kopf has it.
func (l live) Flags() Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}
