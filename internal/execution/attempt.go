package execution

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// errEnded is returned to goroutines that outlive their function: their changes to the object would be lost silently.
var errEnded = errors.New("the attempt has ended: its object cannot be changed any more")

// Attempt is one call of one handler, from the check of its limits until its outcome is decided. Adapters pass it along
// as their request. The function uses it as handlers.Writes.
type Attempt struct {
	// Call is the argument of the function.
	Call handlers.Invocation
	// Question is the question to the chain. Without one, the chain calls the function.
	Question Question
	// Selected is true if the handler is known to be selected for the cause: adapters do not check it again.
	Selected bool
	// Due is true if the handler is known to be due: adapters do not check it again. A second check could differ:
	// earlier handlers have run since, and the clock can be set back.
	Due bool
	// Stop names the adapter that stopped the attempt; zero if none did.
	Stop Stop
	// Account sums up the attempts before this one.
	Account Account
	// Slot is the resource that the attempt occupies while it runs; nil if there is none.
	Slot Slot
	// Limits turn the error of the function into the outcome.
	Limits Limits
	// Outcome is set by the adapters. Took is the duration of the attempt.
	Outcome  Outcome
	Duration time.Duration
	// Entries is the result of an index function. If Keep is true, the object keeps its present entries.
	Entries     map[any]any
	KeepEntries bool
	// ActivityResult is the result of an activity handler; nil if there is none.
	ActivityResult any
	// FlushNow writes the remembered transformations; nil if writing is not possible.
	FlushNow func(ctx context.Context) error
	// PreviousState is the state of the handler before this attempt.
	PreviousState HandlerState
	// Now is the clock.
	Now func() time.Time
	// IsOutcomeDeferred is true if the write of a success can still turn it into a failure. The writer then calls
	// [Attempt.ReportDecided].
	IsOutcomeDeferred bool

	decidedCallbacks []func() // called by [Attempt.ReportDecided]

	mu           sync.Mutex // guards the fields below and the working copy: functions can start goroutines
	ended        bool
	transforms   []patching.Transform
	writtenCount int // the number of transforms that are written
	result       any // the encoded value of SetResult
}

var _ handlers.ObjectWriter = (*Attempt)(nil)

// NewAttempt makes an attempt of a handler that was selected for the cause. It copies the object. The object is nil for
// functions that read the live object, decode the object of the cause themselves, or get one that is copied on request.
// The caller adds the account of the former attempts, the place, and the functions that write.
func NewAttempt(h *handlers.Handler, c *cause.Cause, object map[string]any) *Attempt {
	a := &Attempt{
		Call:     handlers.Invocation{Handler: h, Cause: c},
		Limits:   Limits{ID: h.ID, Policy: h.Policy, Mode: h.ErrorsByDefault()},
		Selected: true, Now: time.Now,
	}
	switch {
	case object != nil:
		a.Call.Object = runtime.DeepCopyJSON(object)
	case h.ReadsText:
		a.Call.EncodedObject = c.Object
	}
	a.Call.Writer = a
	return a
}

// ApplyAccount applies the account of the former attempts to the call and its limits.
func (a *Attempt) ApplyAccount(now time.Time) {
	a.Call.Retry, a.Call.Started, a.Call.LastWait = a.Account.Retries, a.Account.Started, a.Account.LastWait
	a.Call.Trace = a.Account.Trace
	// A first attempt does not have a record yet: its time begins now.
	if a.Call.Started.IsZero() {
		a.Call.Started = now
	}
	a.Limits.Retries, a.Limits.Runtime = a.Account.Retries, a.Account.RuntimeAt(now)
}

// AddTransform applies the transformation to the working copy of the object, and keeps it for the next write.
func (a *Attempt) AddTransform(transform patching.Transform) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return errEnded
	}
	if a.Call.LiveObject != nil { // the object changes meanwhile: apply it to a copy of the newest state
		present, err := a.newestObject().Value()
		if err != nil {
			return err
		}
		a.Call.SetWorkingCopy(runtime.DeepCopyJSON(present))
	}
	object, err := a.Call.WorkingCopy()
	if err == nil {
		err = transform(object)
	}
	if err != nil {
		return err
	}
	a.transforms = append(a.transforms, transform)
	return nil
}

// newestObject returns the newest state of the object. If the object is gone, it returns the state at the start of the
// attempt.
func (a *Attempt) newestObject() *jsontext.LazyObject {
	if object := a.Call.LiveObject.Object(); object != nil {
		return object
	}
	return a.Call.Cause.Object
}

// SetResult sets the result of the attempt, to be used if the attempt succeeds. A later call replaces the value. A
// value without a JSON form is an error.
func (a *Attempt) SetResult(value any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return errEnded
	}
	// The probe encodes the value exactly as the later write does, so an invalid one is reported to the function.
	probe := patching.Patch{}
	if err := probe.AddResult(a.Call.Handler.ID, value); err != nil {
		return err
	}
	// Keep the encoded form: the function can still change the value that it passed.
	a.result, _ = diff.ResolvePath(probe.Merge, diff.Path{"status", a.Call.Handler.ID})
	return nil
}

// Flush writes the transformations remembered so far.
func (a *Attempt) Flush(ctx context.Context) error {
	// The lock is released before the write, which itself reads the remembered transformations.
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

// CloseForChanges marks that the function has returned: the attempt does not accept changes any more.
func (a *Attempt) CloseForChanges() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

// UnwrittenTransforms returns the transformations that are not written yet.
// The result is clipped, so that callers can append without overwriting later transformations.
func (a *Attempt) UnwrittenTransforms() []patching.Transform {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.transforms[a.writtenCount:])
}

// AllTransforms returns all transformations, written or not.
func (a *Attempt) AllTransforms() []patching.Transform {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.transforms)
}

// MarkWritten marks the first n of the remembered transformations as written. Transformations that were remembered
// during the write are still unwritten.
func (a *Attempt) MarkWritten(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// daemons can run for days, and [Attempt.AllTransforms] is not used for them: free the memory
	if a.Call.LiveObject != nil {
		a.transforms = slices.Clone(a.transforms[n:])
		return
	}
	a.writtenCount += n
}

// OnDecided calls the function when the outcome is decided: now, unless the outcome depends on a write.
func (a *Attempt) OnDecided(report func()) {
	a.mu.Lock()
	// Only a success with unwritten changes or a result can be revised by the write.
	open := a.IsOutcomeDeferred && a.Outcome.Final && a.Outcome.Err == nil &&
		(a.writtenCount < len(a.transforms) || a.result != nil)
	a.mu.Unlock()
	if !open {
		report()
		return
	}
	a.decidedCallbacks = append(a.decidedCallbacks, report)
}

// ReportDecided reports the outcome after the write. It can be called again: each report is made once.
func (a *Attempt) ReportDecided() {
	for _, report := range a.decidedCallbacks {
		report()
	}
	a.decidedCallbacks = nil
}

// DropUnwritten discards the unwritten changes and the result.
func (a *Attempt) DropUnwritten() {
	a.MarkWritten(len(a.UnwrittenTransforms()))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.result = nil
}

// ResultToWrite returns the result to be written; nil unless the attempt succeeded without an ignored error.
func (a *Attempt) ResultToWrite() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.Outcome; !a.ended || !o.Final || o.Err != nil || o.Ignored != nil {
		return nil
	}
	return a.result
}

// AdoptChanges applies the changes and the result of another attempt, such as a sub-handler, to the working copy of
// this one. If they do not fit the object, it does nothing: the write reports the error.
func (a *Attempt) AdoptChanges(other *Attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	patch := patching.Patch{Transforms: other.AllTransforms()}
	h := other.Call.Handler
	if patch.AddResult(h.ID, other.ResultToWrite(), h.FormerIDs...) != nil || patch.IsEmpty() {
		return
	}
	object, err := a.Call.WorkingCopy()
	if err != nil {
		return
	}
	if changed, err := patch.ApplyTo(object); err == nil {
		// The function holds this very map, so its content is replaced, and not the map.
		clear(object)
		maps.Copy(object, changed)
	}
}

// CopyObject returns a copy of the working copy. The lock is needed as the function can change it meanwhile.
func (a *Attempt) CopyObject() (map[string]any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object, err := a.Call.WorkingCopy()
	return runtime.DeepCopyJSON(object), err
}
