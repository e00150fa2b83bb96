package memory

import (
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Object is what memory keeps of one object. An object that needs none of it has no entry. The pass over an object is
// the only one that uses it.
type Object struct {
	// Changes are what the passes leave to those after them: the initial mark, and outcomes that are not written yet.
	Changes changes.Memory
	// Throttle spaces the passes while the framework fails.
	Throttle Throttle

	written  write  // our own last write, until the cache has it
	settled  string // the version of our write that nothing is to be done for, until the cache has it
	released bool   // we let it go: what the cache still shows of it is past
	gone     string // the newest version known when the server said that there is no such object
	blocked  string // what was said last about malformed memory
	panicked string // what was said last about a panic

	read   *compact.Object  // the state that Newest has decoded in this pass; nil without one
	opened *jsontext.Object // the same decoded
}

// write is the API server's answer to a write, decoded in a pass and compressed between passes: where objects come in
// faster than they are handled, all of them wait with one. The zero value is none.
type write struct {
	opened *jsontext.Object
	packed *compact.Object
}

// Unknown is true if nothing is kept of the object.
func (o *Object) Unknown() bool {
	return o.Changes.Idle() && o.written.none() && o.settled == "" && !o.released && o.gone == "" &&
		o.Throttle.failures == 0 && o.blocked == "" && o.panicked == ""
}

// Newest is the later of the cached state and our own last write, decoded once in a pass. It is shared: callers must
// not modify it. An error is that of an object that cannot be decoded.
func (o *Object) Newest(cached *compact.Object) (*jsontext.Object, error) {
	o.catchUp(cached)
	switch {
	case o.written.opened != nil:
		return o.written.opened, nil
	case o.written.packed != nil:
		cached = o.written.packed
	}
	if o.read == cached {
		return o.opened, nil
	}
	opened, err := cached.Open()
	if err == nil {
		_, err = opened.Value()
	}
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", cached.Key(), err)
	}
	o.read, o.opened = cached, opened
	return opened, nil
}

// Echoes tells whether what the cache has is our own write, or what was before that, and nothing is to be done for it:
// the pass that has written it has seen to that, or one that knew of it. What others have written before is in the
// answer to our write, which that pass knew; what they write after it has a later version.
func (o *Object) Echoes(cached *compact.Object) bool {
	if o.settled == "" || !o.Changes.Idle() {
		return false
	}
	settled, has := o.settled, cached.GetResourceVersion()
	if patching.Newer(settled, has) {
		return true
	}
	o.settled = ""
	o.catchUp(cached)
	return has == settled
}

// Proceed takes over the result of a pass over the cached object. Latest is what the cache has at the end of the pass:
// maybe another state, or nil.
func (o *Object) Proceed(cached *compact.Object, next changes.Next, latest *compact.Object) {
	if next.Written != nil {
		o.written = write{opened: next.Written}
	}
	if latest == nil || latest.GetUID() != cached.GetUID() {
		latest = cached
	}
	if o.settled = ""; next.Settled && next.After == nil && !o.written.none() {
		o.settled = o.written.version()
	}
	o.released = next.Released
	if o.catchUp(latest); next.Gone {
		*o = Object{Changes: o.Changes, gone: o.version(latest)}
	}
}

// Wrote takes over the API server's answer to a write that was no part of a pass, nil if there was none, and whether
// the write removed the last finalizer of a deleted object.
func (o *Object) Wrote(body map[string]any, released bool) {
	if body != nil && !released {
		o.written, o.settled = write{opened: jsontext.Of(body)}, ""
	}
	o.released = o.released || released
}

// Past tells whether the cache is behind the end of the object: we removed its last finalizer, or it was not found. The
// cache may be behind our own writes by then, and get them before it gets the end.
func (o *Object) Past(cached *compact.Object) bool {
	has := cached.GetResourceVersion()
	return o.released || o.gone != "" && (has == o.gone || patching.Newer(o.gone, has))
}

// version is that of the newest state that is known.
func (o *Object) version(cached *compact.Object) string {
	if o.written.none() {
		return cached.GetResourceVersion()
	}
	return o.written.version()
}

// catchUp forgets our own write if the cache has it: from then on the cache knows better. The versions of this one
// object tell: a watch leaves none of its states out for good. (That an object has gone ends its memory as a whole.)
func (o *Object) catchUp(cached *compact.Object) {
	if o.written.none() {
		return
	}
	if own, has := o.written.version(), cached.GetResourceVersion(); has == own || patching.Newer(has, own) {
		o.written = write{}
	}
}

func (w *write) none() bool { return w.opened == nil && w.packed == nil }

func (w *write) version() string {
	if w.packed != nil {
		return w.packed.GetResourceVersion()
	}
	body, err := w.opened.Value()
	if err != nil {
		return ""
	}
	return patching.VersionOf(body)
}

// pack compresses the answer; what cannot be encoded stays as it is.
func (w *write) pack() {
	if w.opened == nil {
		return
	}
	packed, err := compact.Pack(w.opened)
	if err == nil {
		*w = write{packed: packed}
	}
}

// Unsettle has the next pass look at the object, whatever the cache has by then.
func (o *Object) Unsettle() { o.settled = "" }

// Blocks notes why the object is blocked, and tells whether that reason is new: it is logged once.
func (o *Object) Blocks(reason string) (news bool) {
	news = o.blocked != reason
	o.blocked = reason
	return news
}

// Repeats tells whether the error is a panic that was logged already: its stack is worth one line, however often the
// pass is retried.
func (o *Object) Repeats(err error) bool {
	told := o.panicked
	if o.panicked = ""; panics.Stack(err) != nil {
		o.panicked = err.Error()
	}
	return told != "" && told == o.panicked
}

// Succeed notes a pass without an error: the next error is logged, whatever it is.
func (o *Object) Succeed() {
	o.blocked, o.panicked = "", ""
	o.Throttle.Succeed()
}

// Throttle spaces the passes over one object while the framework fails for it. The zero value does not.
type Throttle struct {
	failures int // in a row
	until    time.Time
}

// Wait is how long no pass may be made yet.
func (t *Throttle) Wait(now time.Time) time.Duration { return max(0, t.until.Sub(now)) }

// Fail counts a failure, and gives the delay before the next pass: the next one of the list, or its last; or the one
// that the API server asks for, if that is longer. With neither, the object waits for its next event.
func (t *Throttle) Fail(delays []time.Duration, asked time.Duration, now time.Time) (delay time.Duration, again bool) {
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

// Succeed begins anew.
func (t *Throttle) Succeed() { *t = Throttle{} }
