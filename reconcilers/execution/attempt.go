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
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// errEnded is for goroutines that outlive their function: their changes to the object would be lost silently.
var errEnded = errors.New("the attempt has ended: its object cannot be changed any more")

// Attempt is one call of one handler, from before its limits are checked until its outcome is known. It is the request
// that the adapters pass along, and handlers.Writes for the function.
type Attempt struct {
	// Call is the argument of the function.
	Call handlers.Invocation
	// Asking is the question to the chain; with none, the chain calls the function.
	Asking Question
	// Selected is true if the handler is known to be selected for the cause: adapters do not check that again.
	Selected bool
	// Due is true if the handler is known to be due: adapters do not check that again. Other handlers may have been
	// called since, and the clock may have been set back.
	Due bool
	// Stopped says which adapter stopped the attempt; the zero value is none.
	Stopped Stop
	// Account sums up the attempts before this one.
	Account Account
	// Place is what the attempt occupies while it runs; nil is nothing.
	Place Place
	// Limits turn the error of the function into the outcome.
	Limits Limits
	// Outcome is the result of the attempt, as set by the adapters; Took is how long it took.
	Outcome Outcome
	Took    time.Duration
	// Entries are the result of an index function; Keep, that the object keeps its present entries.
	Entries map[any]any
	Keep    bool
	// Returned is the result of an acting handler; nil is none.
	Returned any
	// FlushNow writes the remembered transformations; nil if writing is not possible.
	FlushNow func(ctx context.Context) error
	// Previous is the state of the handler before this attempt.
	Previous HandlerState
	// Now is the clock.
	Now func() time.Time
	// Deferred is true if a success with something to write is decided by that write: its owner calls Decide then.
	Deferred bool

	reports []func() // for Decide

	mu         sync.Mutex
	ended      bool
	transforms []patching.Transform
	written    int // how many of them
	result     any
}

var _ handlers.Writes = (*Attempt)(nil)

// New makes an attempt of a handler that was selected for the cause. It copies the object; nil is for functions that
// read the live object, or decode that of the cause by themselves, and for those that are given one that is copied when
// they ask for it. The caller adds the account of former attempts, the place, and the functions that write.
func New(h *handlers.Handler, c *cause.Cause, object map[string]any) *Attempt {
	a := &Attempt{
		Call:     handlers.Invocation{Handler: h, Cause: c},
		Limits:   Limits{ID: h.ID, Policy: h.Policy, Mode: h.ErrorsByDefault()},
		Selected: true, Now: time.Now,
	}
	switch {
	case object != nil:
		a.Call.Object = runtime.DeepCopyJSON(object)
	case h.ReadsText:
		a.Call.Given = c.Object
	}
	a.Call.Writes = a
	return a
}

// Continue goes on from the account of the attempts before.
func (a *Attempt) Continue(now time.Time) {
	a.Call.Retry, a.Call.Started, a.Call.Waited = a.Account.Retries, a.Account.Started, a.Account.Waited
	a.Call.Trace = a.Account.Trace
	if a.Call.Started.IsZero() {
		a.Call.Started = now
	}
	a.Limits.Retries, a.Limits.Runtime = a.Account.Retries, a.Account.Runtime(now)
}

// Remember applies the transformation to the working copy of the object, and keeps it for the next write.
func (a *Attempt) Remember(transform patching.Transform) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return errEnded
	}
	if a.Call.Live != nil { // the object changes meanwhile: apply the transformation to a copy of its newest state
		present, err := a.present().Value()
		if err != nil {
			return err
		}
		a.Call.WorkOn(runtime.DeepCopyJSON(present))
	}
	object, err := a.Call.Working()
	if err == nil {
		err = transform(object)
	}
	if err != nil {
		return err
	}
	a.transforms = append(a.transforms, transform)
	return nil
}

// present gives the newest state of the object or, if there is none, its state at the beginning.
func (a *Attempt) present() *jsontext.Object {
	if object := a.Call.Live.Object(); object != nil {
		return object
	}
	return a.Call.Cause.Object
}

// SetResult sets the result of the attempt if it succeeds; the last call counts. A value without a JSON form is an
// error.
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
	// Keep the encoded value, as the function may go on changing the given one.
	a.result, _ = diff.Resolve(probe.Merge, diff.Path{"status", a.Call.Handler.ID})
	return nil
}

// Flush writes the transformations remembered so far.
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

// Remembered gives the transformations that are not written yet.
func (a *Attempt) Remembered() []patching.Transform {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.transforms[a.written:])
}

// Made gives all transformations, written or not.
func (a *Attempt) Made() []patching.Transform {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.transforms)
}

// Written marks the first n of the remembered transformations as written.
func (a *Attempt) Written(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Call.Live != nil { // a daemon may run for ever, and no caller uses Made of it: drop them
		a.transforms = slices.Clone(a.transforms[n:])
		return
	}
	a.written += n
}

// OnDecided has the function called once the outcome is decided: at once, unless a write decides it.
func (a *Attempt) OnDecided(report func()) {
	a.mu.Lock()
	open := a.Deferred && a.Outcome.Final && a.Outcome.Err == nil && (a.written < len(a.transforms) || a.result != nil)
	a.mu.Unlock()
	if !open {
		report()
		return
	}
	a.reports = append(a.reports, report)
}

// Decide says that the outcome is final now, after the write. It may be called again.
func (a *Attempt) Decide() {
	for _, report := range a.reports {
		report()
	}
	a.reports = nil
}

// Drop gives up what is not written yet, the result included.
func (a *Attempt) Drop() {
	a.Written(len(a.Remembered()))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.result = nil
}

// Result gives the result to be written: nil unless the attempt has succeeded without an ignored error.
func (a *Attempt) Result() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.Outcome; !a.ended || !o.Final || o.Err != nil || o.Ignored != nil {
		return nil
	}
	return a.result
}

// Adopt applies the changes and the result of another attempt to the working copy of this one. It does nothing if they
// cannot be applied.
func (a *Attempt) Adopt(other *Attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	patch := patching.Patch{Transforms: other.Made()}
	h := other.Call.Handler
	if patch.AddResult(h.ID, other.Result(), h.FormerIDs...) != nil || patch.Empty() {
		return
	}
	object, err := a.Call.Working()
	if err != nil {
		return
	}
	if changed, err := patch.ApplyTo(object); err == nil {
		clear(object)
		maps.Copy(object, changed)
	}
}

// Copied is a copy of the working copy as it is now, while the function may change it.
func (a *Attempt) Copied() (map[string]any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object, err := a.Call.Working()
	return runtime.DeepCopyJSON(object), err
}
