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
	mu                sync.Mutex
	effects           map[string]string // the last outside effect of each handler, by uid and id
	hadFinalizer      map[string]bool   // the objects that had a finalizer
	backgroundEffects map[string]bool   // the objects with something outside that a function in the background made
}

func (l *ledger) recordEffect(id, uid, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.effects == nil {
		l.effects = map[string]string{}
	}
	l.effects[uid+" "+id] = what
}

// recordBackgroundEffect notes something outside that must be released when the object is deleted.
func (l *ledger) recordBackgroundEffect(uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backgroundEffects == nil {
		l.backgroundEffects = map[string]bool{}
	}
	l.backgroundEffects[uid] = true
}

// recordFinalizer notes which objects were ever held.
func (l *ledger) recordFinalizer(object *unstructured.Unstructured) {
	if object == nil || len(object.GetFinalizers()) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hadFinalizer == nil {
		l.hadFinalizer = map[string]bool{}
	}
	l.hadFinalizer[string(object.GetUID())] = true
}

// unfinished returns the missing work.
func (w *harness) unfinished() (found []string) {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	object := w.object()
	if w.scenario.hasChildren {
		collectGarbage(w)
		found = w.childMismatches(object)
	}
	if object == nil {
		if !w.scenario.isDeleted {
			return append(found, "the object is gone")
		}
	} else if w.scenario.isDeleted {
		return append(found, fmt.Sprintf("the object is still there, held by %v", object.GetFinalizers()))
	}
	pending := maps.Clone(w.ledger.backgroundEffects)
	if pending == nil {
		pending = map[string]bool{}
	}
	maps.Copy(pending, w.ledger.hadFinalizer)
	for uid := range pending {
		if w.isCurrent(object, uid) {
			continue
		}
		for _, id := range w.scenario.deletionHandlers {
			if w.ledger.effects[uid+" "+id] == "" {
				found = append(found, fmt.Sprintf("handler %q was not called for the deletion of %s", id, uid))
			}
		}
	}
	if object != nil {
		found = append(found, w.unsettled(object)...)
	}
	return found
}

func (w *harness) isCurrent(object *unstructured.Unstructured, uid string) bool {
	return object != nil && string(object.GetUID()) == uid
}

// unsettled returns the errors in the final state of an object.
func (w *harness) unsettled(object *unstructured.Unstructured) (found []string) {
	state := stateOf(object)
	for _, id := range w.scenario.recordingHandlers {
		if last := w.ledger.effects[string(object.GetUID())+" "+id]; last != state {
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
		if !systemAnnotations[name] && !(w.scenario.hasChildren && strings.Contains(name, "/children-of.")) {
			found = append(found, fmt.Sprintf("annotation %q is left behind: %s", name, object.GetAnnotations()[name]))
		}
	}
	return found
}
