package events

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Loops has the objects whose event handlers have written: the events of these writes call the handlers again. Only one
// worker at a time may use one object. The zero value is ready to use.
type Loops struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*loop
}

// loop is one of these objects. A nil loop is an object that no handler has changed.
type loop struct {
	guard    kind.LoopGuard
	versions []string // resource versions of the operator's writes whose events have not arrived yet

	isOwnWrite bool // the current event is caused by one of the writes
	isLast     bool // the current event is the last one of this delivery
	isCounted  bool // the current event is already counted in times
	// Ids since the last count: of the handlers that own writes have called, and of those that have written then.
	calledHandlers, writingHandlers []string
	ownEventCount                   int // number of own events that have called any handler since the last count
	// ids of the handlers that the current event was held for; nil means all handlers
	deliverOnlyTo []string

	heldEvent    *RawEvent // the newest event that is delayed; nil if there is none
	heldHandlers []string  // ids of the handlers that it will call
}

// DeliverNext is [EventHandling.DeliverEvents] with a delay for handlers that call themselves again and again: they get
// the events of own writes later. It returns after which time it must be called again; zero means with the next event.
func (h *EventHandling) DeliverNext(
	ctx context.Context, key types.NamespacedName, waiting []RawEvent,
) (patch patching.Patch, wait time.Duration) {
	loop := h.Loops.findLoop(key)
	if loop == nil {
		return h.DeliverEvents(ctx, waiting), 0
	}
	// Each delivery counts from zero.
	loop.calledHandlers, loop.writingHandlers, loop.ownEventCount, loop.deliverOnlyTo = nil, nil, 0, nil
	if held := loop.heldEvent; len(waiting) > 0 {
		// The waiting events are newer than the held one, which they replace.
		loop.heldEvent, loop.heldHandlers = nil, nil
	} else if held != nil && loop.isDue() {
		// The delay of the held event is over. Deliver it only to the handlers that it was held for: the others were
		// called already.
		waiting, loop.deliverOnlyTo = []RawEvent{*held}, loop.heldHandlers
		loop.heldEvent, loop.heldHandlers = nil, nil
	}
	patch = h.deliverAll(ctx, waiting, loop)
	// There is no write that could count these calls, so count them here.
	if patch.IsEmpty() {
		loop.countCalls(utcNow())
	}
	if len(waiting) > 0 && loop.isOver(waiting[len(waiting)-1]) {
		h.Loops.forgetLoop(key)
	}
	return patch, loop.timeUntilHeld()
}

// NoteWrite counts the result of [EventHandling.WriteChanges]. It returns the handlers that call themselves again and
// again by their writes, and whose next such calls are delayed.
func (h *EventHandling) NoteWrite(
	ctx context.Context, key types.NamespacedName, body map[string]any, result patching.WriteResult,
) (looping []string) {
	if h.Loops == nil || len(result.Versions) == 0 {
		// Nothing was written, so the events of this delivery do not continue a loop.
		if loop := h.Loops.findLoop(key); loop != nil {
			loop.writingHandlers = nil
			loop.countCalls(utcNow())
		}
		return nil
	}
	loop := h.Loops.ensureLoop(key)
	loop.versions = append(loop.versions, result.Versions...)
	delay, isNew := loop.countCalls(utcNow())
	// Log once for each loop, with the fields that the handlers keep changing.
	if isNew {
		kind.LogLoop(logf.FromContext(ctx), loop.guard.LoopMembers(), changedFields(body, result.Body), delay)
	}
	if delay > 0 {
		return loop.writingHandlers
	}
	return nil
}

// changedFields returns the paths of the fields that differ, without the fields that the API server maintains.
func changedFields(before, after map[string]any) (paths []diff.Path) {
	for _, item := range diff.Compute(comparedContents(before), comparedContents(after)) {
		paths = append(paths, item.Path)
	}
	return paths
}

// comparedContents returns the object with only those metadata that handlers can change in a meaningful way.
func comparedContents(body map[string]any) map[string]any {
	// Versions, timestamps and managed fields differ after each write: leave them out.
	shown := maps.Clone(body)
	metadata, _ := body["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, key := range []string{"labels", "annotations", "finalizers"} {
		if value, ok := metadata[key]; ok {
			kept[key] = value
		}
	}
	shown["metadata"] = kept
	return shown
}

// beginEvent starts the accounting of one event. Nil does nothing.
func (l *loop) beginEvent(e RawEvent, last bool) {
	if l != nil {
		l.isCounted = false
		l.isOwnWrite, l.isLast = l.deliverOnlyTo != nil || slices.Contains(l.versions, e.Object.GetResourceVersion()),
			last
	}
}

// holdBack reports whether the handler must not be called for the event now. The last event is kept for it; earlier
// events are skipped, because the last one shows a newer state. A deletion is never held: it ends the loop, and no
// later event shows it.
func (l *loop) holdBack(e RawEvent, id string, now time.Time) bool {
	switch {
	case l == nil || e.Type == Deleted:
		return false
	case l.deliverOnlyTo != nil:
		return !slices.Contains(l.deliverOnlyTo, id)
	case !l.isOwnWrite || !l.guard.DelayedUntil(id).After(now):
		return false
	case l.isLast: // an earlier event need not be held: the last one shows a newer state
		l.heldEvent, l.heldHandlers = &e, append(l.heldHandlers, id)
	}
	return true
}

// recordCall records a call that an own write has caused, and whether the handler has written again.
func (l *loop) recordCall(a *execution.Attempt) {
	if l == nil || !l.isOwnWrite {
		return
	}
	if !l.isCounted {
		l.isCounted, l.ownEventCount = true, l.ownEventCount+1
	}
	id := a.Call.Handler.ID
	if !slices.Contains(l.calledHandlers, id) {
		l.calledHandlers = append(l.calledHandlers, id)
	}
	if (len(a.AllTransforms()) > 0 || a.ResultToWrite() != nil) && !slices.Contains(l.writingHandlers, id) {
		l.writingHandlers = append(l.writingHandlers, id)
	}
}

// countCalls passes the calls since the last time to the guard. It returns the delay of the next such calls, and
// whether the loop has just been detected.
func (l *loop) countCalls(now time.Time) (delay time.Duration, isNew bool) {
	// The guard counts each own event that has called handlers as one round of the loop.
	for range l.ownEventCount {
		if delay, isNew = l.guard.NoteCalls(l.calledHandlers, l.writingHandlers, now); delay > 0 {
			break
		}
	}
	l.calledHandlers, l.ownEventCount = nil, 0
	return delay, isNew
}

// isDue reports whether the held event may be delivered to any of its handlers now.
func (l *loop) isDue() bool {
	at := utcNow()
	return slices.ContainsFunc(l.heldHandlers, func(id string) bool { return !l.guard.DelayedUntil(id).After(at) })
}

// timeUntilHeld returns after which time the held event must be delivered; zero if none is held. With a held event, it
// is never zero, even if the delay is over already or the loop has ended, because possibly no other event follows.
func (l *loop) timeUntilHeld() (wait time.Duration) {
	if l.heldEvent == nil {
		return 0
	}
	// The first handler whose delay ends decides: see isDue.
	wait = kind.LongestLoopDelay
	for _, id := range l.heldHandlers {
		wait = min(wait, time.Until(l.guard.DelayedUntil(id)))
	}
	return max(wait, time.Nanosecond)
}

// isOver reports whether the state of the object can be dropped after this event: no own write is expected any more.
func (l *loop) isOver(last RawEvent) bool {
	if last.Type == Deleted {
		return true // it has no further events
	}
	has := last.Object.GetResourceVersion()
	// Versions that are older than the event will not arrive any more: the informer may skip states.
	l.versions = slices.DeleteFunc(slices.Clone(l.versions), func(own string) bool {
		return own == has || patching.IsNewerVersion(has, own)
	})
	// A loop whose handlers do not run any more must not keep the object in the map.
	if l.heldEvent == nil && len(l.versions) == 0 {
		l.guard.ExpireLoop(utcNow())
	}
	return l.heldEvent == nil && len(l.versions) == 0 && len(l.calledHandlers) == 0 && l.guard.IsIdle()
}

// findLoop returns the loop of an object; nil if there is none.
func (l *Loops) findLoop(key types.NamespacedName) *loop {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key]
}

// NoteVersions adds the versions of a write by other parts of the operator: it calls the event handlers as well.
func (l *Loops) NoteVersions(key types.NamespacedName, versions []string) {
	if loop := l.findLoop(key); loop != nil {
		loop.versions = append(loop.versions, versions...)
	}
}

// ensureLoop returns the loop of an object, and makes it if necessary.
func (l *Loops) ensureLoop(key types.NamespacedName) *loop {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[types.NamespacedName]*loop{}
	}
	if l.byKey[key] == nil {
		l.byKey[key] = &loop{}
	}
	return l.byKey[key]
}

// forgetLoop drops the loop of an object.
func (l *Loops) forgetLoop(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}

// utcNow returns the time in UTC. Handlers get it as the start of their attempt.
func utcNow() time.Time { return time.Now().UTC() }
