package events

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/loops"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Loops are the objects whose event handlers have written: that calls them again. Only one worker at a time may use one
// object. The zero value is ready to use.
type Loops struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*loop
}

// loop is one of these objects. Nil is one that no handler has changed.
type loop struct {
	guard    loops.Guard
	versions []string // of the operator's writes whose events are to come

	own           bool     // the present event is one of them
	last          bool     // no event follows it
	isCounted     bool     // it has called a handler
	calls, writes []string // of the handlers that own writes have called since the last write
	times         int      // how many events have called any
	only          []string // the handlers that the present event was held for; nil is all

	held    *Event   // the newest event that is delayed
	heldFor []string // the handlers that it is to call
}

// DeliverNext is [Handling.Deliver] that delays the events of own writes for handlers that call themselves again and
// again. It returns in what time it must be called again; zero is with the next event.
func (h *Handling) DeliverNext(
	ctx context.Context, key types.NamespacedName, waiting []Event,
) (patch patching.Patch, wait time.Duration) {
	loop := h.Loops.of(key)
	if loop == nil {
		return h.Deliver(ctx, waiting), 0
	}
	loop.calls, loop.writes, loop.times, loop.only = nil, nil, 0, nil
	if held := loop.held; len(waiting) > 0 {
		loop.held, loop.heldFor = nil, nil // the waiting events are newer
	} else if held != nil && loop.isDue() {
		waiting, loop.only = []Event{*held}, loop.heldFor
		loop.held, loop.heldFor = nil, nil
	}
	patch = h.deliver(ctx, waiting, loop)
	if patch.Empty() {
		loop.note(now())
	}
	if len(waiting) > 0 && loop.isOver(waiting[len(waiting)-1]) {
		h.Loops.forget(key)
	}
	return patch, loop.wait()
}

// NoteWrite counts the result of Write. It returns the handlers that call themselves again and again by their writes;
// their next such calls are delayed.
func (h *Handling) NoteWrite(
	ctx context.Context, key types.NamespacedName, body map[string]any, result patching.Result,
) (looping []string) {
	if h.Loops == nil || len(result.Versions) == 0 {
		if loop := h.Loops.of(key); loop != nil {
			loop.writes = nil
			loop.note(now())
		}
		return nil
	}
	loop := h.Loops.ensure(key)
	loop.versions = append(loop.versions, result.Versions...)
	delay, isNew := loop.note(now())
	if isNew {
		loops.Log(logf.FromContext(ctx), loop.guard.Members(), changed(body, result.Body), delay)
	}
	if delay > 0 {
		return loop.writes
	}
	return nil
}

// changed are the fields that differ, without what the API server maintains.
func changed(before, after map[string]any) (paths []diff.Path) {
	for _, item := range diff.Compute(contents(before), contents(after)) {
		paths = append(paths, item.Path)
	}
	return paths
}

func contents(body map[string]any) map[string]any {
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

// begin takes up one event.
func (l *loop) begin(e Event, last bool) {
	if l != nil {
		l.isCounted = false
		l.own, l.last = l.only != nil || slices.Contains(l.versions, e.Object.GetResourceVersion()), last
	}
}

// holds reports whether the handler is not to be called for the event, or not now.
func (l *loop) holds(e Event, id string, now time.Time) bool {
	switch {
	case l == nil:
		return false
	case l.only != nil:
		return !slices.Contains(l.only, id)
	case !l.own || !l.guard.Until(id).After(now):
		return false
	case l.last: // otherwise, the next event shows a newer state
		l.held, l.heldFor = &e, append(l.heldFor, id)
	}
	return true
}

// called notes a call that our own write has caused.
func (l *loop) called(a *execution.Attempt) {
	if l == nil || !l.own {
		return
	}
	if !l.isCounted {
		l.isCounted, l.times = true, l.times+1
	}
	id := a.Call.Handler.ID
	if !slices.Contains(l.calls, id) {
		l.calls = append(l.calls, id)
	}
	if (len(a.Made()) > 0 || a.Result() != nil) && !slices.Contains(l.writes, id) {
		l.writes = append(l.writes, id)
	}
}

// note counts the calls since the last time.
func (l *loop) note(now time.Time) (delay time.Duration, isNew bool) {
	for range l.times {
		if delay, isNew = l.guard.Note(l.calls, l.writes, now); delay > 0 {
			break
		}
	}
	l.calls, l.times = nil, 0
	return delay, isNew
}

// isDue reports whether the held event may be delivered now.
func (l *loop) isDue() bool {
	at := now()
	return slices.ContainsFunc(l.heldFor, func(id string) bool { return !l.guard.Until(id).After(at) })
}

// wait returns in what time the held event must be delivered; zero if none is held. It is never zero otherwise, even
// if other handlers have run for longer than the delay, or have ended the loop: no other event may follow.
func (l *loop) wait() (wait time.Duration) {
	if l.held == nil {
		return 0
	}
	wait = loops.LongestDelay
	for _, id := range l.heldFor {
		wait = min(wait, time.Until(l.guard.Until(id)))
	}
	return max(wait, time.Nanosecond)
}

// isOver reports whether the state of the object can be dropped after this event.
func (l *loop) isOver(last Event) bool {
	if last.Type == Deleted {
		return true
	}
	has := last.Object.GetResourceVersion()
	l.versions = slices.DeleteFunc(slices.Clone(l.versions), func(own string) bool {
		return own == has || patching.Newer(has, own)
	})
	if l.held == nil && len(l.versions) == 0 {
		l.guard.Expire(now())
	}
	return l.held == nil && len(l.versions) == 0 && len(l.calls) == 0 && l.guard.Idle()
}

func (l *Loops) of(key types.NamespacedName) *loop {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key]
}

// Note adds the versions of a write that was not made for event handlers: they are called by the operator nevertheless.
func (l *Loops) Note(key types.NamespacedName, versions []string) {
	if loop := l.of(key); loop != nil {
		loop.versions = append(loop.versions, versions...)
	}
}

func (l *Loops) ensure(key types.NamespacedName) *loop {
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

func (l *Loops) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}

func now() time.Time { return time.Now().UTC() }
