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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// started is how a process begins that keeps one form of records or the other.
type started func(w *world, registered ...*handlers.Handler) *process

// calledFirst tells who is called in the first pass over an object with so much room.
func (start started) calledFirst(t *testing.T, bytes int, declared func() []*handlers.Handler) (called string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.roomFor(bytes)
		p := start(w, onCreate("a", w.steps(nil, declared()...)))
		if _, err := p.pass(); err != nil {
			t.Errorf("with room for %d bytes: %v", bytes, err)
		}
		called = strings.ReplaceAll(strings.Join(w.calls(), " "), "0s create ", "")
	})
	return called
}

// asKopf keeps a record of each success, so that it makes a difference whether there is room for it.
func asKopf(w *world, registered ...*handlers.Handler) *process {
	return w.startWith(annotated, registered...)
}

// mostProgress fails for now, and leaves the longest record that there is.
func mostProgress() handlers.Func {
	return fails(1, errors.Join(temporaryError{10 * time.Second}, errLong))
}

// With more room, more sub-handlers are called, and never another one instead: all that may come of a call has to fit
// beside the successes of those that wait for their first one. If it does not, these lose their room, the last of them
// first, but not for the one that is to be called; and without that room, nobody is called.
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
				got = append(got, started(asKopf).calledFirst(t, bytes, declared))
			}
			want := []string{"a", "a first", "a first second", "a first second third"}
			if d := cmp.Diff(want, slices.Compact(got)); d != "" {
				t.Errorf("with more and more room, -want, +got:\n%s", d)
			}
		})
	}
}

// What a sub-handler writes in its time may make room for the next one, even if it fails: that is measured.
func TestRoomThatIsMade(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const enough = 6000
	compact := started((*world).compact) // who was not called yet has no record, which would be a place
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
		t.Errorf("room for %d bytes is needed if none is made, and for %d if a lot is", without, with)
	}
}

// That not all have room is told before the first of them is called, as each success needs some.
func TestTooFewPlacesAreToldAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	called := false
	for bytes := 4000; !called && bytes < 6000; bytes += 50 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.roomFor(bytes)
			first := sub("first", func(context.Context, *handlers.Invocation) error {
				if called = true; !w.hasLogged("too many sub-handlers") {
					t.Errorf("with room for %d bytes, nothing was told: %q", bytes, w.logged)
				}
				return nil
			})
			if _, err := asKopf(w, onCreate("a", w.steps(nil, first, sub("second", ok)))).pass(); err != nil {
				t.Error(err)
			}
		})
	}
	if !called {
		t.Error("nobody was called")
	}
}
