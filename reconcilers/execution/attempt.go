package execution

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// errEnded is for functions that leave goroutines behind: what these do to the object would be lost silently.
var errEnded = errors.New("the attempt has ended: its object cannot be changed any more")

// Attempt is one call of one handler, from before its limits are checked until its outcome is known.
// It is what the adapters pass along. It is handlers.Writes for the function.
type Attempt struct {
	// Call is what the function gets.
	Call handlers.Call
	// Asking is what the adapters are asked; with none, the function is called.
	Asking Question
	// Selected is true if the handler was selected for the cause before: it is not asked again.
	Selected bool
	// Stopped says which adapter stopped the attempt; the zero value is none.
	Stopped Stop
	// Account is what is known of the attempts before this one.
	Account Account
	// Place is what the attempt occupies while it runs; nil is nothing.
	Place Place
	// Limits judge the outcome.
	Limits Limits
	// Outcome is filled by the adapters.
	Outcome Outcome
	// Entries and Keep are what an index function said.
	Entries map[any]any
	Keep    bool
	// FlushNow writes what was remembered; nil where it cannot be.
	FlushNow func(ctx context.Context) error
	// Previous is the handler's account before this attempt.
	Previous HandlerState
	// Now is the clock.
	Now func() time.Time

	mu         sync.Mutex
	ended      bool
	transforms []patching.Transform
	written    int // how many of them
	result     any
}

var _ handlers.Writes = (*Attempt)(nil)

// New makes an attempt of a handler that was selected for the cause. The object is copied; nil is for functions that
// look at what goes on. What is known of former attempts, where it runs and how it writes are for the caller to add.
func New(h *handlers.Handler, c *cause.Cause, object map[string]any) *Attempt {
	a := &Attempt{
		Call:     handlers.Call{Handler: h, Cause: c},
		Limits:   Limits{ID: h.ID, Policy: h.Policy, Mode: h.ErrorsByDefault()},
		Selected: true, Now: time.Now,
	}
	if object != nil {
		a.Call.Object = runtime.DeepCopyJSON(object)
	}
	a.Call.Writes = a
	return a
}

// Continue goes on from the account of the attempts before.
func (a *Attempt) Continue(now time.Time) {
	a.Call.Retry, a.Call.Started = a.Account.Retries, a.Account.Started
	if a.Call.Started.IsZero() {
		a.Call.Started = now
	}
	a.Limits.Retries, a.Limits.Runtime = a.Account.Retries, a.Account.Runtime(now)
}

// Remember applies the transformation to the working copy, and keeps it for the next write.
func (a *Attempt) Remember(transform patching.Transform) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return errEnded
	}
	if a.Call.Live != nil { // the object goes on: what is remembered is rehearsed on what it is like now
		a.Call.Object = runtime.DeepCopyJSON(a.present())
	}
	if err := transform(a.Call.Object); err != nil {
		return err
	}
	a.transforms = append(a.transforms, transform)
	return nil
}

// present is the object as it is now, or was at the beginning.
func (a *Attempt) present() map[string]any {
	if body := a.Call.Live.Object(); body != nil {
		return body
	}
	return a.Call.Cause.Body
}

// SetResult keeps the value for the end of a successful attempt; the last one counts. A value that cannot be JSON is
// an error.
func (a *Attempt) SetResult(value any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return errEnded
	}
	probe := patching.Patch{}
	if err := probe.AddResult(a.Call.Handler.ID, value); err != nil {
		return err
	}
	// The value as it is now: the function may go on changing it.
	a.result, _ = diff.Resolve(probe.Merge, diff.Path{"status", a.Call.Handler.ID})
	return nil
}

// Flush writes what was remembered so far.
func (a *Attempt) Flush(ctx context.Context) error {
	a.mu.Lock()
	ended := a.ended
	a.mu.Unlock()
	switch {
	case a.FlushNow == nil:
		return nil
	case ended:
		return errEnded
	}
	return a.FlushNow(ctx)
}

// End closes the attempt for changes: the function has returned.
func (a *Attempt) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

// Remembered are the transformations that are not written yet.
func (a *Attempt) Remembered() []patching.Transform {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.transforms[a.written:])
}

// Made are all transformations, be they written or not.
func (a *Attempt) Made() []patching.Transform {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.transforms)
}

// Written ticks off the first n of the remembered transformations: they are on the real object now.
func (a *Attempt) Written(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Call.Live != nil { // such an attempt may go on for ever, and nobody asks it for all that it has made
		a.transforms = slices.Clone(a.transforms[n:])
		return
	}
	a.written += n
}

// Result is what is delivered: nil unless the attempt succeeded, by its own word and not for its errors being ignored.
func (a *Attempt) Result() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.Outcome; !a.ended || !o.Final || o.Err != nil || o.Ignored != nil {
		return nil
	}
	return a.result
}

// Adopt shows what another attempt did to the object in the working copy of this one. What does not fit it is left out.
func (a *Attempt) Adopt(other *Attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	patch := patching.Patch{Transforms: other.Made()}
	if patch.AddResult(other.Call.Handler.ID, other.Result()) != nil || patch.Empty() {
		return
	}
	if changed, err := patch.ApplyTo(a.Call.Object); err == nil {
		clear(a.Call.Object)
		maps.Copy(a.Call.Object, changed)
	}
}
