package owned_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// TestPassesForWaits shows that an owner gets a pass for the children that its handlers wait for, and for no others.
func TestPassesForWaits(t *testing.T) {
	asked := 0
	w := newHarness(t)
	w.route.NoteEvent(ownerIdentity("o"))
	w.route.NoteEvent(ownerIdentity("p"))
	w.await(childWait(waiter("h"), &asked))
	w.deliverEvent(w.pods, owned.Added, child("d", 1, "o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "p"))
	w.want("children without a wait")
	w.deliverEvent(w.pods, owned.Modified, child("c", 2, "p", "o"))
	w.want("the awaited child", "pass o")
}

// subHandler returns a sub-handler.
func subHandler(id, root string) *handlers.Handler { return &handlers.Handler{ID: id, Root: root} }

// TestWaitsOfParts shows that a handler is due if any of its own waits or the waits of its sub-handlers is over.
func TestWaitsOfParts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		waiting []*handlers.Handler // the last one waits for a child that is ready
		of      *handlers.Handler
		want    bool
	}{
		"Other": {"a handler without a wait is due, even if another one waits",
			[]*handlers.Handler{waiter("g")}, waiter("h"), true},
		"Own": {
			"a handler is not due if only the wait of another handler is over",
			[]*handlers.Handler{waiter("h"), waiter("g")}, waiter("h"), false,
		},
		"Part": {"a handler is due if the wait of its sub-handler is over",
			[]*handlers.Handler{waiter("g"), subHandler("h/part", "h")}, waiter("h"), true},
		"SleepyPart": {"a handler is not due if its sub-handler still waits",
			[]*handlers.Handler{subHandler("h/part", "h"), waiter("g")}, waiter("h"), false},
		"OfMany": {
			"a handler is due if one of several sub-handlers is",
			[]*handlers.Handler{subHandler("h/a", "h"), subHandler("h/b", "h"), subHandler("h/c", "h")}, waiter("h"),
			true,
		},
		"PartOfPart": {
			"a sub-handler is due if the wait of its own sub-handler is over",
			[]*handlers.Handler{subHandler("h/a", "h"), subHandler("h/a/b", "h")},
			subHandler("h/a", "h"), true,
		},
		"Sibling": {
			"a sub-handler is not due if only the wait of its sibling is over",
			[]*handlers.Handler{subHandler("h/a", "h"), subHandler("h/b", "h")},
			subHandler("h/a", "h"), false,
		},
		"SameBeginning": {
			"a handler with a similar id is not a sub-handler", []*handlers.Handler{waiter("h"), waiter("h/a")},
			waiter("h"), false,
		},
		"SameRoot": {
			"a wait of the parent does not make its sub-handler due",
			[]*handlers.Handler{subHandler("h/a", "h"), waiter("h")},
			subHandler("h/a", "h"), false,
		},
		"OtherRoot": {
			"a sub-handler of another root does not make the handler due",
			[]*handlers.Handler{waiter("h"), subHandler("h/a/b", "h/a")}, waiter("h"), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			w := newHarness(t)
			w.route.NoteEvent(ownerIdentity("o"))
			for i, h := range tc.waiting {
				wait := childWait(h, &asked)
				if i < len(tc.waiting)-1 {
					wait.Name = "missing"
				}
				w.await(wait)
			}
			w.deliverEvent(w.pods, owned.Added, child("c", 3, "o"))
			if got := w.ShouldWake("o", tc.of, "change"); got != tc.want {
				t.Errorf("%s: due: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestCalled shows which waits remain after the call of a handler.
func TestCalled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		woken  bool
		of     *handlers.Handler
		waits  bool
		left   bool
	}{
		"WaitsOn":  {"a call that waits keeps a wait that is not over", false, waiter("h"), true, true},
		"WaitsNew": {"a call that waits drops a wait that is over", true, waiter("h"), true, false},
		"Goes":     {"a call that waits for nothing ends the wait", false, waiter("h"), false, false},
		"Other":    {"the call of another handler keeps the wait", true, waiter("g"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			h := waiter("h")
			w := newHarness(t)
			w.route.NoteEvent(ownerIdentity("o"))
			w.await(childWait(h, &asked))
			if w.ShouldWake("o", h, "change") {
				t.Error("due before the child exists")
			}
			if tc.woken && !w.ShouldWake("o", h, "another") {
				t.Error("not due although the object has changed")
			}
			if w.ShouldWake("o", h, "change") {
				t.Error("due again although the change was already seen")
			}
			w.NoteCall("o", tc.of, tc.waits)
			if awake := w.ShouldWake("o", h, "change"); awake == tc.left {
				t.Errorf("%s: due: %v", tc.reason, awake)
			}
			w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
			if passes := len(w.journal); (passes == 1) != tc.left {
				t.Errorf("%s: got %d passes for the child", tc.reason, passes)
			}
		})
	}
}

// TestSameWait shows that a second wait for the same child replaces the first one, and that other waits are kept.
func TestSameWait(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(w *owned.ChildWait)
		first  int // evaluations of the condition
		second int
	}{
		"Same": {"a second wait for the same child replaces the first one", func(*owned.ChildWait) {}, 0, 1},
		"Name": {"a wait for another name is kept beside the first one",
			func(w *owned.ChildWait) { w.Name = "d" }, 1, 0},
		"Kind": {"a wait for another kind is kept beside the first one",
			func(w *owned.ChildWait) { w.Kind.Kind = "Secret" }, 1, 0},
		"Namespace": {"a wait in another namespace is kept beside the first one",
			func(w *owned.ChildWait) { w.Namespace = "elsewhere" }, 1, 0},
		"Handler": {"a wait of a sub-handler is kept beside that of its parent",
			func(w *owned.ChildWait) { w.Handler = subHandler("h/part", "h") }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := 0, 0
			w := newHarness(t)
			w.route.NoteEvent(ownerIdentity("o"))
			w.await(childWait(waiter("h"), &first))
			again := childWait(waiter("h"), &second)
			tc.change(&again)
			w.await(again)
			w.deliverEvent(w.pods, owned.Added, child("c", 3, "o"))
			if !w.ShouldWake("o", waiter("h"), "change") {
				t.Error("not due although the child exists")
			}
			if first != tc.first || second != tc.second {
				t.Errorf("%s: the first condition was evaluated %d times, the second one %d times",
					tc.reason, first, second)
			}
		})
	}
}

// TestReachedAtOnce shows that a wait that is met at once does not end other waits.
func TestReachedAtOnce(t *testing.T) {
	asked := 0
	h := waiter("h")
	w := newHarness(t)
	w.route.NoteEvent(ownerIdentity("o"))
	missing := childWait(h, &asked)
	missing.Name = "missing"
	w.await(missing)
	w.deliverEvent(w.pods, owned.Added, child("c", 3, "o"))
	if found, reached, err := w.StartWait(childWait(h, &asked)); !found || !reached || err != nil {
		t.Errorf("got found %v, reached %v, error %v", found, reached, err)
	}
	if w.ShouldWake("o", h, "change") {
		t.Error("due although the other child is missing")
	}
}

// TestPanicOfAWait shows that a panic of a condition is returned to the handler as an error.
func TestPanicOfAWait(t *testing.T) {
	h := waiter("h")
	w := newHarness(t)
	w.route.NoteEvent(ownerIdentity("o"))
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
	wait := childWait(h, new(int))
	wait.IsReached = func(map[string]any) (bool, error) { panic("bad") }
	if _, reached, err := w.StartWait(wait); reached || err == nil {
		t.Errorf("got reached %v, error %v", reached, err)
	}
}
