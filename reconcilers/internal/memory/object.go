package memory

import (
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// ObjectState is the state of one object in memory. An object without any state does not have an entry. The running
// pass is its only user, so it does not have a lock. Between passes, [Objects] changes it under its own lock.
type ObjectState struct {
	// Changes is the state that passes leave for later ones: the initial mark, and outcomes that are not written yet.
	Changes changes.Memory
	// Throttle delays passes while the framework fails for the object.
	Throttle Throttle

	lastWrite       ownWrite // our own last write, until the cache has it
	settledVersion  string   // the version of our write that needs no further pass, until the cache has it
	released        bool     // we removed the last finalizer: every cached state is stale
	goneVersion     string   // the newest version that was known when the API server returned "not found"
	lastLoggedBlock string   // the last logged reason of a block by malformed memory
	lastLoggedPanic string   // the last logged text of a panic

	// the cached state that [ObjectState.NewestState] decoded in this pass; nil without one
	decodedFrom *compact.CachedObject
	decoded     *jsontext.LazyObject // that state, decoded
}

// ownWrite is the API server's answer to a write. It is decoded during a pass and compressed between passes: where
// objects arrive faster than they are handled, each waiting object holds one. The zero value means that there is no
// write.
type ownWrite struct {
	decoded *jsontext.LazyObject
	packed  *compact.CachedObject
}

// IsEmpty reports whether the object has no state that must be kept. Its entry can then be dropped.
func (o *ObjectState) IsEmpty() bool {
	return o.Changes.IsEmpty() && o.lastWrite.isEmpty() && o.settledVersion == "" && !o.released &&
		o.goneVersion == "" &&
		o.Throttle.failures == 0 && o.lastLoggedBlock == "" && o.lastLoggedPanic == ""
}

// NewestState returns the newer of the cached state and our own last write. It decodes that state once in a pass. The
// result is shared: callers must not modify it. It returns an error if the object cannot be decoded.
func (o *ObjectState) NewestState(cached *compact.CachedObject) (*jsontext.LazyObject, error) {
	o.dropCachedWrite(cached)
	switch {
	case o.lastWrite.decoded != nil:
		return o.lastWrite.decoded, nil
	case o.lastWrite.packed != nil:
		cached = o.lastWrite.packed
	}
	if o.decodedFrom == cached {
		return o.decoded, nil
	}
	// Open and Value decode lazily. Both run here, so that callers can ignore the error of a later Value.
	opened, err := cached.Open()
	if err == nil {
		_, err = opened.Value()
	}
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", cached.ObjectKey(), err)
	}
	o.decodedFrom, o.decoded = cached, opened
	return opened, nil
}

// IsEcho reports whether the cached state is our own write or an older state, and needs no pass. The pass that wrote
// it, or one that saw the answer, has already handled it. Earlier writes of other clients are part of that answer;
// their later writes have a newer version.
func (o *ObjectState) IsEcho(cached *compact.CachedObject) bool {
	if o.settledVersion == "" || !o.Changes.IsEmpty() {
		return false
	}
	settled, has := o.settledVersion, cached.GetResourceVersion()
	// The informer is behind our write. An event for the write itself will follow, so settled stays.
	if patching.IsNewerVersion(settled, has) {
		return true
	}
	// The cache has caught up. Only an event with exactly our version is an echo.
	o.settledVersion = ""
	o.dropCachedWrite(cached)
	return has == settled
}

// ApplyPassResult stores the result of a pass over the cached object. Latest is the cached state at the end of the
// pass. It may differ from the one that the pass began with, and is nil if the cache does not have the object.
func (o *ObjectState) ApplyPassResult(
	cached *compact.CachedObject, next changes.PassResult, latest *compact.CachedObject,
) {
	if next.Answer != nil {
		o.lastWrite = ownWrite{decoded: next.Answer}
	}
	// A new object of the same name has its own memory. Its version must not confirm our write.
	if latest == nil || latest.GetUID() != cached.GetUID() {
		latest = cached
	}
	// With a delay, a pass must follow. It must not be skipped as an echo of our write.
	if o.settledVersion = ""; next.Settled && next.RequeueAfter == nil && !o.lastWrite.isEmpty() {
		o.settledVersion = o.lastWrite.resourceVersion()
	}
	o.released = next.Released
	// Keep the version: the cache may still deliver older states of the deleted object.
	if o.dropCachedWrite(latest); next.Gone {
		*o = ObjectState{Changes: o.Changes, goneVersion: o.newestVersion(latest)}
	}
}

// NoteWrite stores the API server's answer to a write outside of the handling of changes, such as one for event
// handlers. The body is nil if there was no write. Released reports whether the write removed the last finalizer of a
// deleted object; its answer is then not kept.
func (o *ObjectState) NoteWrite(body map[string]any, released bool) {
	if body != nil && !released {
		o.lastWrite, o.settledVersion = ownWrite{decoded: jsontext.NewFromValue(body)}, ""
	}
	o.released = o.released || released
}

// HasEnded reports whether the object has ended and the cache has not caught up: we removed its last finalizer, or the
// API server returned "not found". The cache may still deliver our own earlier writes before the deletion.
func (o *ObjectState) HasEnded(cached *compact.CachedObject) bool {
	has := cached.GetResourceVersion()
	return o.released || o.goneVersion != "" && (has == o.goneVersion || patching.IsNewerVersion(o.goneVersion, has))
}

// newestVersion returns the version of the newest known state.
func (o *ObjectState) newestVersion(cached *compact.CachedObject) string {
	if o.lastWrite.isEmpty() {
		return cached.GetResourceVersion()
	}
	return o.lastWrite.resourceVersion()
}

// dropCachedWrite drops our own write as soon as the cache has it or a newer state; the cache is authoritative from
// then on. Comparing versions of one object is sufficient, because a watch eventually delivers each state of an object
// or a newer one. A deleted object loses its memory as a whole.
func (o *ObjectState) dropCachedWrite(cached *compact.CachedObject) {
	if o.lastWrite.isEmpty() {
		return
	}
	own, has := o.lastWrite.resourceVersion(), cached.GetResourceVersion()
	if has == own || patching.IsNewerVersion(has, own) {
		o.lastWrite = ownWrite{}
	}
}

// isEmpty reports whether there is no write.
func (w *ownWrite) isEmpty() bool { return w.decoded == nil && w.packed == nil }

// resourceVersion returns the resource version of the answer, or an empty one if it cannot be decoded. An empty version
// is never newer than another one, so such a write stays until the next write or deletion.
func (w *ownWrite) resourceVersion() string {
	if w.packed != nil {
		return w.packed.GetResourceVersion()
	}
	body, err := w.decoded.Value()
	if err != nil {
		return ""
	}
	return patching.ResourceVersion(body)
}

// packAnswer compresses the answer at the end of a pass. An answer that cannot be encoded stays decoded: it costs
// memory only.
func (w *ownWrite) packAnswer() {
	if w.decoded == nil {
		return
	}
	packed, err := compact.NewFromOpened(w.decoded)
	if err == nil {
		*w = ownWrite{packed: packed}
	}
}

// RequirePass makes the next pass handle the object even if its event is an echo of our own write.
func (o *ObjectState) RequirePass() { o.settledVersion = "" }

// NoteBlocked records why the object is blocked. It reports whether the reason is new, because each reason is logged
// once.
func (o *ObjectState) NoteBlocked(reason string) (news bool) {
	news = o.lastLoggedBlock != reason
	o.lastLoggedBlock = reason
	return news
}

// IsRepeatedPanic reports whether the error is the same panic as that of the previous failure. Retries can repeat it
// without limit, so its stack is logged once.
func (o *ObjectState) IsRepeatedPanic(err error) bool {
	told := o.lastLoggedPanic
	if o.lastLoggedPanic = ""; panics.StackFields(err) != nil {
		o.lastLoggedPanic = err.Error()
	}
	return told != "" && told == o.lastLoggedPanic
}

// NoteSuccess records a pass without errors. The next error is logged even if it is the same as the last one.
func (o *ObjectState) NoteSuccess() {
	o.lastLoggedBlock, o.lastLoggedPanic = "", ""
	o.Throttle.ResetFailures()
}

// Throttle delays the passes over one object while the framework fails for it. The zero value does not delay.
type Throttle struct {
	failures int       // consecutive
	until    time.Time // no pass may begin before
}

// RemainingDelay returns the time until the next pass may begin, or zero.
func (t *Throttle) RemainingDelay(now time.Time) time.Duration { return max(0, t.until.Sub(now)) }

// CountFailure counts a failure and returns the delay before the next pass. It takes the next of the delays, or the
// last one when all are used. A longer delay from the API server takes precedence. With neither, again is false, and
// the object waits for its next event.
func (t *Throttle) CountFailure(
	delays []time.Duration, asked time.Duration, now time.Time,
) (delay time.Duration, again bool) {
	if len(delays) == 0 && asked == 0 {
		return 0, false
	}
	if delay = asked; len(delays) > 0 {
		delay = max(asked, delays[min(t.failures, len(delays)-1)])
	}
	t.failures++
	t.until = now.Add(delay)
	return delay, true
}

// ResetFailures removes the delay and resets the count of failures.
func (t *Throttle) ResetFailures() { *t = Throttle{} }
