package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// killedCase is what happens after a process was killed that declared the children a, b and yard/d of a new house.
type killedCase struct {
	reason    string
	isEdited  bool             // the house has no rooms any more when the next process starts
	next      func(s houseSel) // the handlers of the next process
	isRemoved bool             // the next process does not have the handler
}

var killedCases = map[string]killedCase{
	"SameVersion": {
		reason: "each child is recorded before it is applied, so the next process deletes those that an edit has " +
			"removed from the spec",
		isEdited: true, next: ensureWatchedRooms,
	},
	"NoChildren": {
		reason: "each child is recorded before it is applied, so a version that declares no children deletes them",
		next:   func(s houseSel) { s.Owns(newRoom()); s.On("ensure", nonDeleteReasons, ensureNothing) },
	},
	"NoKind": {
		reason: "the record has the kinds of the children, so a version that does not watch the kind deletes them",
		next:   func(s houseSel) { s.On("ensure", nonDeleteReasons, ensureNothing) },
	},
	"NoHandler": {
		reason: "the children of a removed handler stay as long as the house. Then the garbage collector deletes " +
			"those that the house owns, and the operator deletes the others",
		next: func(s houseSel) {
			s.On("other", nonDeleteReasons, func(context.Context, *houseChange) error { return nil })
		},
		isRemoved: true,
	},
}

func ensureWatchedRooms(s houseSel) {
	s.Owns(newRoom())
	s.On("ensure", nonDeleteReasons, ensure)
}

func ensureNothing(ctx context.Context, c *houseChange) error { return c.Ensure(ctx) }

// TestEnsureKilledAnywhere shows that a process can be killed before any of its writes: the next one finds all children
// that it has applied, whichever version of the operator it runs.
func TestEnsureKilledAnywhere(t *testing.T) {
	for name, tc := range killedCases {
		t.Run(name, func(t *testing.T) {
			kills, unfinished := 0, 0
			for last, isKilled := 1, true; isKilled; last++ {
				withEnsureFixture(t, func(h ensureFixture) {
					var rooms []string
					if isKilled, rooms = h.killBeforeWrite(last); isKilled {
						kills++
					}
					if isKilled && len(rooms) > 0 {
						unfinished++
					}
					if tc.isEdited {
						h.changeRooms()
					}
					_, stop := h.run(tc.next)
					defer stop()
					h.settle()
					when := fmt.Sprintf("killed before write %d with the children %v: %s", last, rooms, tc.reason)
					if tc.isRemoved {
						h.requireDeletedWithHouse(when, rooms)
					} else {
						h.requireNoTraces(when)
					}
				})
			}
			t.Logf("killed %d times, %d of them with children", kills, unfinished)
			if unfinished < 3 {
				t.Errorf("there is a kill after each of the 3 applies, before the last write: got %d", unfinished)
			}
		})
	}
}

// killBeforeWrite creates a house and runs an operator until the server would receive the write of this number, without
// events. It returns whether there was such a write, and the children that exist. A process that was killed before it
// got the answer to the write before leaves the same state.
func (h ensureFixture) killBeforeWrite(last int) (isKilled bool, rooms []string) {
	h.t.Helper()
	way, count := h.api.Connect(), atomic.Int64{}
	way.Before = func(_ context.Context, r memapi.Request) error {
		isWrite := !slices.Contains([]string{"get", "list", "watch"}, r.Verb) && r.Resource.Plural != "events"
		if isWrite && count.Add(1) == int64(last) {
			way.Cut()
		}
		return nil
	}
	stop := h.runEnsuring(ensureWatchedRooms)(way)
	h.createHouseAndWait("a=1", "b=1", "yard/d=1") // the house cannot own the last one
	_ = stop()                                     // without its connection, it can fail
	return count.Load() >= int64(last), h.presentRooms()
}

// requireNoTraces checks that the house has no children, and nothing of the operator that is about children.
func (h ensureFixture) requireNoTraces(when string) {
	h.t.Helper()
	h.requireRooms(when)
	if records, finalizers := h.childRecords(), h.house().GetFinalizers(); len(records)+len(finalizers) > 0 {
		h.t.Errorf("%s: the house has the records %v and the finalizers %v", when, records, finalizers)
	}
}

// requireDeletedWithHouse checks that the rooms stay until the house is deleted. After that, only those are left that
// the house owns: the API server of the test has no garbage collector.
func (h ensureFixture) requireDeletedWithHouse(when string, rooms []string) {
	h.t.Helper()
	h.requireRooms(when, rooms...)
	var owned []string
	for _, room := range rooms {
		namespace, name, _ := strings.Cut(room, "/")
		if namespace != "default" {
			continue
		}
		owned = append(owned, room)
		if owner := h.owner(namespace, name); owner != h.house().GetUID() {
			h.t.Errorf("%s: the owner of %s is %q", when, room, owner)
		}
	}
	if err := h.directClient.Delete(h.t.Context(), h.house()); err != nil {
		h.t.Error(err)
	}
	h.settle()
	if h.house().Object != nil {
		h.t.Errorf("%s: the house is not deleted, with the finalizers %v", when, h.house().GetFinalizers())
	}
	h.requireRooms(when, owned...)
}
