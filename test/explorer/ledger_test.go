package explorer_test

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkpoint is how long an outcome may wait for its write, with what a write takes.
const checkpoint = time.Second

// key is one attempt of one handler for one change: what is called once, unless it is cut off.
type key struct {
	uid, id, reason, seen string
	retry                 int
	life                  int // of resume handlers: each life resumes anew
}

type call struct {
	key
	started, returned time.Time
	err               error
}

// ledger is what happened.
type ledger struct {
	calls   []*call
	outside map[string]string // what each handler told last, by uid and id
	held    map[string]bool   // the objects that had a finalizer
}

func (l *life) enter(c *Change) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{
		uid: string(c.Object.GetUID()), id: c.ID, reason: string(c.Reason), seen: fmt.Sprint(c.Diff), retry: c.Retry,
	}
	if l.scenario.resumes[c.ID] {
		k.life = l.number
	}
	entry := &call{key: k, started: time.Now()}
	l.ledger.calls = append(l.ledger.calls, entry)
	return entry
}

func (l *life) leave(c *call, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.returned, c.err = time.Now(), err
}

func (l *ledger) tell(id, uid, what string) {
	if l.outside == nil {
		l.outside = map[string]string{}
	}
	l.outside[uid+" "+id] = what
}

// written notes which objects were ever held.
func (l *ledger) written(object *unstructured.Unstructured) {
	if object == nil || len(object.GetFinalizers()) == 0 {
		return
	}
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[string(object.GetUID())] = true
}

// judge says what must not be.
func (w *world) judge() {
	w.mu.Lock()
	calls := append([]*call(nil), w.ledger.calls...)
	w.mu.Unlock()
	w.violations = append(w.repeated(calls), w.unfinished()...)
}

// repeated are calls that no cut explains.
func (w *world) repeated(all []*call) (found []string) {
	calls := map[key][]*call{}
	for _, c := range all {
		calls[c.key] = append(calls[c.key], c)
	}
	for k, list := range calls {
		allowed, waits := 1, 0
		for _, c := range list {
			if w.cutOff(c) {
				allowed++
			} else if c.waited() {
				waits++
			}
		}
		allowed += min(waits, mostWaits)
		if len(list) > allowed {
			found = append(found, fmt.Sprintf("%d calls for one change, %d are explained: %+v", len(list), allowed, k))
		}
	}
	return found
}

// mostWaits is how often a handler is called for one change without going on: at first, for a change that comes
// meanwhile under the same key, after a restart, and for the other child.
const mostWaits = 4

// waited tells whether a call has ended to wait for a child, so that another one must follow.
func (c *call) waited() bool { return c.err != nil && strings.HasPrefix(c.err.Error(), "waits for ") }

// cutOff tells whether the cut fell between the start of a call and the write of its outcome: that is at the latest a
// second after its return, or as much later as the API was disturbed.
func (w *world) cutOff(c *call) bool {
	if w.killed.IsZero() || w.killed.Before(c.started) {
		return false
	}
	if c.returned.IsZero() {
		return true
	}
	grace := time.Duration(0)
	if w.course.ofWrites() {
		grace = 3 * time.Second // a refused checkpoint is tried again after twice the time
	}
	return !w.killed.After(c.returned.Add(checkpoint + grace))
}

// unfinished is what should have been done.
func (w *world) unfinished() (found []string) {
	object := w.object()
	if w.scenario.ensures {
		collect(w)
		found = w.strayed(object)
	}
	if object == nil {
		if !w.scenario.deleted {
			return append(found, "the object is gone")
		}
	} else if w.scenario.deleted {
		return append(found, fmt.Sprintf("the object is still there, held by %v", object.GetFinalizers()))
	}
	for uid := range w.ledger.held {
		if w.isCurrent(object, uid) {
			continue
		}
		for _, id := range w.scenario.releases {
			if w.ledger.outside[uid+" "+id] == "" {
				found = append(found, fmt.Sprintf("handler %q was not called for the deletion of %s", id, uid))
			}
		}
	}
	if object != nil {
		found = append(found, w.unsettled(object)...)
	}
	return found
}

func (w *world) isCurrent(object *unstructured.Unstructured, uid string) bool {
	return object != nil && string(object.GetUID()) == uid
}

// unsettled is what is wrong with an object that is there in the end.
func (w *world) unsettled(object *unstructured.Unstructured) (found []string) {
	state := told(object)
	for _, id := range w.scenario.carriers {
		if last := w.ledger.outside[string(object.GetUID())+" "+id]; last != state {
			found = append(found, fmt.Sprintf("handler %q has told %q last, and the object is %q", id, last, state))
		}
		result, _, _ := unstructured.NestedString(object.Object, "status", id, "told")
		if result != state {
			found = append(
				found, fmt.Sprintf("the result of handler %q is %q, and the object is %q", id, result, state),
			)
		}
	}
	for name := range object.GetAnnotations() {
		if !w.scenario.lasting[name] && !(w.scenario.ensures && strings.Contains(name, "/children-of.")) {
			found = append(found, fmt.Sprintf("annotation %q is left behind: %s", name, object.GetAnnotations()[name]))
		}
	}
	return found
}
