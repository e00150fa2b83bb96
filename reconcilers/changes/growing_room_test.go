package changes_test

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// startFunc starts a process that uses one of the two forms of records.
type startFunc func(w *harness, registered ...*handlers.Handler) *process

// calledFirst returns the handlers that the first pass calls if the object has the given room.
func (start startFunc) calledFirst(t *testing.T, bytes int, declared func() []*handlers.Handler) (called string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		w.leaveRoom(bytes)
		p := start(w, onCreate("a", w.steps(nil, declared()...)))
		if _, err := p.pass(); err != nil {
			t.Errorf("with room for %d bytes: %v", bytes, err)
		}
		called = strings.ReplaceAll(strings.Join(w.calls(), " "), "0s create ", "")
	})
	return called
}

// startWithAllRecords starts a process that keeps a record of each success, so that the room for it matters.
func startWithAllRecords(w *harness, registered ...*handlers.Handler) *process {
	return w.startWith(annotationStores, registered...)
}

// mostProgress fails at the first call and leaves the longest possible record.
func mostProgress() handlers.Func {
	return fails(1, errors.Join(temporaryError{10 * time.Second}, errLong))
}

// TestGrowingRoom shows that more room allows more sub-handlers in their order, and never a different one instead. The
// largest record of a call must fit beside the successes reserved for the sub-handlers that were not called yet. If it
// does not fit, these reservations are given up, beginning with the last sub-handler, but not the one that is to be
// called; without that reservation, no sub-handler is called.
func TestGrowingRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, declared := range map[string]func() []*handlers.Handler{
		"InOrder": func() []*handlers.Handler {
			return []*handlers.Handler{sub("first", mostProgress()), sub("second", ok), sub("third", ok)}
		},
		"DeclaredBefore": func() []*handlers.Handler {
			return []*handlers.Handler{
				sub("third", ok, afterSuccess("second")), sub("first", mostProgress()), sub("second", ok),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for bytes := 4000; bytes < 6000; bytes += 50 {
				got = append(got, startFunc(startWithAllRecords).calledFirst(t, bytes, declared))
			}
			want := []string{"a", "a first", "a first second", "a first second third"}
			if d := cmp.Diff(want, slices.Compact(got)); d != "" {
				t.Errorf("with increasing room, -want, +got:\n%s", d)
			}
		})
	}
}

// TestRoomThatIsMade shows that the room for the next sub-handler is measured again after each one, because even a
// failing sub-handler can free some by its writes.
func TestRoomThatIsMade(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const enough = 6000
	compact := startFunc((*harness).compact) // a sub-handler that was not called yet has no record that takes room
	needed := func(first func() handlers.Func) int {
		return sort.Search(enough, func(bytes int) bool {
			return bytes > 4000 && strings.HasSuffix(compact.calledFirst(t, bytes, func() []*handlers.Handler {
				return []*handlers.Handler{sub("first", first()), sub("second", ok)}
			}), "second")
		})
	}
	without := needed(mostProgress)
	with := needed(func() handlers.Func {
		return all(patches(nil, "metadata", "annotations", othersAnnotation), flushes, mostProgress())
	})
	if without >= enough || with > without-200 {
		t.Errorf("%d bytes are needed if the first sub-handler frees no room, and %d if it does", without, with)
	}
}

// TestMissingRoomIsLoggedAtOnce shows that missing room for some sub-handlers is logged before the first one is
// called, since each success needs room.
func TestMissingRoomIsLoggedAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for form, start := range map[string]startFunc{"AllRecords": startWithAllRecords, "Compact": (*harness).compact} {
		t.Run(form, func(t *testing.T) {
			called := false
			for bytes := 4000; !called && bytes < 6000; bytes += 50 {
				synctest.Test(t, func(t *testing.T) {
					w := newHarness(t)
					w.leaveRoom(bytes)
					first := func(context.Context, *handlers.Invocation) error {
						if called = true; !w.hasLogged("too many sub-handlers") {
							t.Errorf("with room for %d bytes, the first call came before the log line: %q", bytes,
								w.logLines)
						}
						return nil
					}
					// The names of 100 successes need more room than one step adds.
					p := start(w, onCreate("a", declares(100, func(i int) handlers.Func {
						if i == 0 {
							return first
						}
						return ok
					})))
					if _, err := p.pass(); err != nil {
						t.Error(err)
					}
				})
			}
			if !called {
				t.Error("no sub-handler was called")
			}
		})
	}
}
