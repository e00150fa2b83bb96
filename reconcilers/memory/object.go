package memory

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Object is what is kept of one object. An object that needs none of it has no entry. A pass has its object for itself.
type Object struct {
	// Changes are what the passes leave to those after them: the initial mark, and outcomes that are not written yet.
	Changes changes.Memory
	// Throttle spaces the passes while the framework fails.
	Throttle Throttle

	written  map[string]any // our own last write, until the cache has it
	released bool           // we let it go: what the cache still shows of it is past
	gone     string         // the version, as cached, of which the server said that there is no such object
	blocked  string         // what was said last about malformed memory
	panicked string         // what was said last about a panic
}

func (o *Object) idle() bool {
	return o.Changes.Idle() && o.written == nil && !o.released && o.gone == "" && o.Throttle.failures == 0 &&
		o.blocked == "" && o.panicked == ""
}

// Newest is the later of what the cache has and our own last write. It is shared: nobody modifies it.
func (o *Object) Newest(cached *unstructured.Unstructured) map[string]any {
	o.catchUp(cached)
	if o.written == nil {
		return cached.Object
	}
	return o.written
}

// Proceed takes over what a pass over the cached object has left on the server. The latest is what the cache has by
// now: maybe another state, or nil.
func (o *Object) Proceed(cached *unstructured.Unstructured, next changes.Next, latest *unstructured.Unstructured) {
	if next.Gone {
		*o = Object{gone: cached.GetResourceVersion()}
		return
	}
	o.released = next.Released
	if next.Written != nil {
		o.written = next.Written
	}
	if latest != nil && latest.GetUID() == cached.GetUID() {
		o.catchUp(latest)
	}
}

// Wrote takes over the API server's answer to a write beside the passes, if there is one, and whether the write let the
// object go.
func (o *Object) Wrote(body map[string]any, released bool) {
	if body != nil && !released {
		o.written = body
	}
	o.released = o.released || released
}

// Past tells whether all that the cache shows of the object is over: it was let go by us, or was not found.
func (o *Object) Past(cached *unstructured.Unstructured) bool {
	return o.released || o.gone != "" && o.gone == cached.GetResourceVersion()
}

// catchUp forgets our own write if the cache has it: from then on the cache knows better. The versions of this one
// object tell: a watch leaves none of its states out for good. (That an object has gone ends its memory as a whole.)
func (o *Object) catchUp(cached *unstructured.Unstructured) {
	if o.written == nil {
		return
	}
	if own, has := patching.VersionOf(o.written), cached.GetResourceVersion(); has == own || patching.Newer(has, own) {
		o.written = nil
	}
}

// Blocks tells whether it is news that the object is blocked for this reason.
func (o *Object) Blocks(reason string) (news bool) {
	news = o.blocked != reason
	o.blocked = reason
	return news
}

// Repeats tells whether it is a panic that was told already: its stack is worth one line, however often it is tried
// again.
func (o *Object) Repeats(err error) bool {
	told := o.panicked
	if o.panicked = ""; panics.Stack(err) != nil {
		o.panicked = err.Error()
	}
	return told != "" && told == o.panicked
}

// Succeed is after a pass without an error: whatever fails next is news.
func (o *Object) Succeed() {
	o.blocked, o.panicked = "", ""
	o.Throttle.Succeed()
}
