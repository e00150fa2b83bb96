package owned_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// An owner gets a pass for children that one of its handlers waits for, and for no others.
func TestPassesForWaits(t *testing.T) {
	asked := 0
	w := newWorld(t)
	w.route.Seen(known("o"))
	w.route.Seen(known("p"))
	w.await(waiting(waiter("h"), &asked))
	w.seen(w.pods, owned.Added, child("d", 1, "o"))
	w.seen(w.pods, owned.Added, child("c", 1, "p"))
	w.want("these are other children")
	w.seen(w.pods, owned.Modified, child("c", 2, "p", "o"))
	w.want("that is the one", "pass o")
}

// part is a sub-handler.
func part(id, root string) *handlers.Handler { return &handlers.Handler{ID: id, Root: root} }

// A handler is due if any of the waits is over that it has itself, or that its parts have.
func TestWaitsOfParts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		waiting []*handlers.Handler // the last one for a child that is ready
		of      *handlers.Handler
		want    bool
	}{
		"Other": {"another handler's wait is not its own", []*handlers.Handler{waiter("g")}, waiter("h"), true},
		"Own": {
			"the child of its own is not there", []*handlers.Handler{waiter("h"), waiter("g")}, waiter("h"), false,
		},
		"Part":       {"its part goes on", []*handlers.Handler{waiter("g"), part("h/part", "h")}, waiter("h"), true},
		"SleepyPart": {"its part waits", []*handlers.Handler{part("h/part", "h"), waiter("g")}, waiter("h"), false},
		"OfMany": {
			"one part may go on",
			[]*handlers.Handler{part("h/a", "h"), part("h/b", "h"), part("h/c", "h")}, waiter("h"), true,
		},
		"PartOfPart": {
			"it is called by its parent", []*handlers.Handler{part("h/a", "h"), part("h/a/b", "h")},
			part("h/a", "h"), true,
		},
		"Sibling": {
			"each part has a wait of its own", []*handlers.Handler{part("h/a", "h"), part("h/b", "h")},
			part("h/a", "h"), false,
		},
		"SameBeginning": {
			"it is called h/a, and is no part of h", []*handlers.Handler{waiter("h"), waiter("h/a")},
			waiter("h"), false,
		},
		"SameRoot": {
			"the parent is no part of its part", []*handlers.Handler{part("h/a", "h"), waiter("h")},
			part("h/a", "h"), false,
		},
		"OtherRoot": {
			"a part of h/a is none of h", []*handlers.Handler{waiter("h"), part("h/a/b", "h/a")}, waiter("h"), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			w := newWorld(t)
			w.route.Seen(known("o"))
			for i, h := range tc.waiting {
				wait := waiting(h, &asked)
				if i < len(tc.waiting)-1 {
					wait.Name = "missing"
				}
				w.await(wait)
			}
			w.seen(w.pods, owned.Added, child("c", 3, "o"))
			if got := w.Awake("o", tc.of, "change"); got != tc.want {
				t.Errorf("%s: it is to be called: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// Which waits are left when the call of a handler has ended.
func TestCalled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		woken  bool
		of     *handlers.Handler
		waits  bool
		left   bool
	}{
		"WaitsOn":  {"it has asked for more, and did not come that far", false, waiter("h"), true, true},
		"WaitsNew": {"it was called for that one, and waits for others", true, waiter("h"), true, false},
		"Goes":     {"it waits for nothing any more", false, waiter("h"), false, false},
		"Other":    {"it is another one that has been called", true, waiter("g"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			h := waiter("h")
			w := newWorld(t)
			w.route.Seen(known("o"))
			w.await(waiting(h, &asked))
			if w.Awake("o", h, "change") {
				t.Error("the child is not there yet")
			}
			if tc.woken && !w.Awake("o", h, "another") {
				t.Error("the object has changed")
			}
			if w.Awake("o", h, "change") {
				t.Error("the change alone was over")
			}
			w.Called("o", tc.of, tc.waits)
			if awake := w.Awake("o", h, "change"); awake == tc.left {
				t.Errorf("%s: it is to be called: %v", tc.reason, awake)
			}
			w.seen(w.pods, owned.Added, child("c", 1, "o"))
			if passes := len(w.journal); (passes == 1) != tc.left {
				t.Errorf("%s: got %d passes for the child", tc.reason, passes)
			}
		})
	}
}

// A handler that waits for the same child again has one wait for it, and each other wait beside that.
func TestSameWait(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(w *owned.Wait)
		first  int // questions
		second int
	}{
		"Same":      {"the new one is instead of the old one", func(*owned.Wait) {}, 0, 1},
		"Name":      {"it waits for both", func(w *owned.Wait) { w.Name = "d" }, 1, 0},
		"Kind":      {"it waits for one of each kind", func(w *owned.Wait) { w.Kind.Kind = "Secret" }, 1, 0},
		"Namespace": {"it waits for one of each namespace", func(w *owned.Wait) { w.Namespace = "elsewhere" }, 1, 0},
		"Handler":   {"its part has its own", func(w *owned.Wait) { w.Handler = part("h/part", "h") }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := 0, 0
			w := newWorld(t)
			w.route.Seen(known("o"))
			w.await(waiting(waiter("h"), &first))
			again := waiting(waiter("h"), &second)
			tc.change(&again)
			w.await(again)
			w.seen(w.pods, owned.Added, child("c", 3, "o"))
			if !w.Awake("o", waiter("h"), "change") {
				t.Error("the child is there")
			}
			if first != tc.first || second != tc.second {
				t.Errorf("%s: the first one asked %d times, the second one %d times", tc.reason, first, second)
			}
		})
	}
}

// What a wait is told at once ends that wait alone.
func TestReachedAtOnce(t *testing.T) {
	asked := 0
	h := waiter("h")
	w := newWorld(t)
	w.route.Seen(known("o"))
	missing := waiting(h, &asked)
	missing.Name = "missing"
	w.await(missing)
	w.seen(w.pods, owned.Added, child("c", 3, "o"))
	if found, reached, err := w.Await(waiting(h, &asked)); !found || !reached || err != nil {
		t.Errorf("got found %v, reached %v, error %v", found, reached, err)
	}
	if w.Awake("o", h, "change") {
		t.Error("the other child is missing still")
	}
}

// A function that panics is one that fails: the handler gets to know.
func TestPanicOfAWait(t *testing.T) {
	h := waiter("h")
	w := newWorld(t)
	w.route.Seen(known("o"))
	w.seen(w.pods, owned.Added, child("c", 1, "o"))
	wait := waiting(h, new(int))
	wait.Reached = func(map[string]any) (bool, error) { panic("bad") }
	if _, reached, err := w.Await(wait); reached || err == nil {
		t.Errorf("got reached %v, error %v", reached, err)
	}
}
