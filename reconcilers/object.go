package reconcilers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// object is what is kept in memory of one object. An object that needs none of it has no entry.
type object struct {
	memory   changes.Memory
	written  map[string]any // our own last write, until the cache has it
	released bool           // we let it go: what the cache still shows of it is past
	gone     string         // the version, as cached, of which the server said that there is no such object
	throttle throttle       // of passes, while the framework fails
	blocked  string         // what was said last about malformed memory
	panicked string         // what was said last about a panic
}

func (o *object) idle() bool {
	return o.memory.Idle() && o.written == nil && !o.released && o.gone == "" && o.throttle.failures == 0 &&
		o.blocked == "" && o.panicked == ""
}

// newest is the later of what the cache has and our own last write.
func (o *object) newest(cached *unstructured.Unstructured) map[string]any {
	o.catchUp(cached)
	if o.written == nil {
		return cached.Object
	}
	return o.written
}

// proceed takes over what a pass over the cached object has left on the server. By now the cache may have another
// state, or none.
func (o *object) proceed(cached *unstructured.Unstructured, next changes.Next, now *unstructured.Unstructured) {
	if next.Gone {
		*o = object{gone: cached.GetResourceVersion()}
		return
	}
	o.released = next.Released
	if next.Written != nil {
		o.written = next.Written
	}
	if now != nil && now.GetUID() == cached.GetUID() {
		o.catchUp(now)
	}
}

// past tells whether all that the cache shows of the object is over: it was let go by us, or was not found.
func (o *object) past(cached *unstructured.Unstructured) bool {
	return o.released || o.gone != "" && o.gone == cached.GetResourceVersion()
}

// catchUp forgets our own write if the cache has it: from then on the cache knows better. The versions of this one
// object tell: a watch leaves none of its states out for good. (That an object has gone ends its memory as a whole.)
func (o *object) catchUp(cached *unstructured.Unstructured) {
	if o.written == nil {
		return
	}
	if own, has := versionOf(o.written), cached.GetResourceVersion(); has == own || newer(has, own) {
		o.written = nil
	}
}

func versionOf(body map[string]any) string {
	return (&unstructured.Unstructured{Object: body}).GetResourceVersion()
}

// newer tells whether version a is later than b. What cannot be compared is not.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// repeats tells whether it is a panic that was told already: its stack is worth one line, however often it is tried
// again.
func (o *object) repeats(err error) bool {
	told := o.panicked
	if o.panicked = ""; panics.Stack(err) != nil {
		o.panicked = err.Error()
	}
	return told != "" && told == o.panicked
}
