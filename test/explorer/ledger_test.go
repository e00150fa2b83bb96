package explorer_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ledger records what happened.
type ledger struct {
	mu      sync.Mutex
	outside map[string]string // the last outside effect of each handler, by uid and id
	held    map[string]bool   // the objects that had a finalizer
	made    map[string]bool   // the objects with something outside that a function in the background made
}

func (l *ledger) recordEffect(id, uid, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outside == nil {
		l.outside = map[string]string{}
	}
	l.outside[uid+" "+id] = what
}

// make notes something outside that must be released when the object is deleted.
func (l *ledger) make(uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		l.made = map[string]bool{}
	}
	l.made[uid] = true
}

// written notes which objects were ever held.
func (l *ledger) written(object *unstructured.Unstructured) {
	if object == nil || len(object.GetFinalizers()) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[string(object.GetUID())] = true
}

// unfinished returns the missing work.
func (w *world) unfinished() (found []string) {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
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
	pending := maps.Clone(w.ledger.made)
	if pending == nil {
		pending = map[string]bool{}
	}
	maps.Copy(pending, w.ledger.held)
	for uid := range pending {
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

// unsettled returns the errors in the final state of an object.
func (w *world) unsettled(object *unstructured.Unstructured) (found []string) {
	state := stateOf(object)
	for _, id := range w.scenario.carriers {
		if last := w.ledger.outside[string(object.GetUID())+" "+id]; last != state {
			found = append(found, fmt.Sprintf("handler %q had effect %q last, and the object is %q", id, last, state))
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
