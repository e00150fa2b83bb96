package changes_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// crashTest is the life of one object under an operator that crashes repeatedly: the object is created, edited during
// that, updated, and deleted.
type crashTest struct {
	*harness
	mu            sync.Mutex
	process       *process
	kills         int
	callCounts    map[string]int // number of calls of each handler, by reason and id
	successCounts map[string]int // number of its successes
	failed        map[string]bool
}

// crashPoint is the request at which the process crashes: its number, counted over all lives, and whether the request
// takes effect.
type crashPoint struct {
	number  int
	applied bool
}

func newCrashTest(t *testing.T, deaths ...crashPoint) *crashTest {
	s := &crashTest{harness: newHarness(t), callCounts: map[string]int{}, successCounts: map[string]int{},
		failed: map[string]bool{}}
	s.serveStatus(true)
	strike := func(r write, applied bool) {
		if slices.Contains(deaths, crashPoint{r.number, applied}) {
			s.kill()
		}
	}
	s.before = func(r write) error { strike(r, false); return nil }
	s.after = func(r write) error { strike(r, true); return nil }
	return s
}

func (s *crashTest) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kills++
	s.process.kill()
}

// countCalls counts the calls and successes of a handler over all lives.
func (s *crashTest) countCalls(h *handlers.Handler) *handlers.Handler {
	own := *h
	own.Call = func(ctx context.Context, c *handlers.Invocation) error {
		key := fmt.Sprintf("%s %s", c.Cause.Reason, h.ID)
		s.mu.Lock()
		s.callCounts[key]++
		s.mu.Unlock()
		err := h.Call(ctx, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && !s.process.dead.Load() {
			s.successCounts[key]++
		}
		return err
	}
	return &own
}

// failOnce fails at the first call over all lives.
func (s *crashTest) failOnce(key string) handlers.Func {
	return func(context.Context, *handlers.Invocation) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed[key] {
			return nil
		}
		s.failed[key] = true
		return temporaryError{delay: 10 * time.Second}
	}
}

// runOperator runs the operator once, until it crashes or there is nothing to do.
func (s *crashTest) runOperator() {
	shared := all(appends(owner("s"), "metadata", "ownerReferences"), s.failOnce("shared"))
	var registered []*handlers.Handler
	for _, h := range []*handlers.Handler{
		onCreate("a", all(patches("a", "status", "seen"), returns("r"))),
		onCreate("b", all(appends(owner("b"), "metadata", "ownerReferences"), takes(3*time.Second), s.failOnce("b"))),
		onCreate("c", all(patches("c", "status", "flushed"), flushes, takes(500*time.Millisecond))),
		onUpdate("u", returns("u")), onUpdate("v", all(takes(2*time.Second), s.failOnce("v"))),
		onUpdate("s", shared), onDelete("s", shared), onDelete("d", takes(2*time.Second)),
	} {
		registered = append(registered, s.countCalls(h))
	}
	p := s.start(registered...)
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	p.settle()
}

// runUntilSettled restarts the operator after each crash until there is nothing to do.
func (s *crashTest) runUntilSettled() {
	for s.runOperator(); s.process.dead.Load(); s.runOperator() {
	}
}

// runWholeLife runs the whole life of the object and checks the result.
func (s *crashTest) runWholeLife() {
	s.runUntilSettled()
	s.wantHandled("created", "one")
	s.wantAt("created", "r", "status", "a")
	s.wantAt("created", "a", "status", "seen")
	s.wantAt("created", "c", "status", "flushed")
	s.wantAt("created", []any{owner("b")}, "metadata", "ownerReferences")
	s.wantAt("created", []any{finalizer}, "metadata", "finalizers")
	s.wantClean("created")
	s.set("two", "spec", "field")
	s.runUntilSettled()
	s.wantHandled("updated", "two")
	s.wantAt("updated", "u", "status", "u")
	s.wantClean("updated")
	s.delete()
	s.runUntilSettled()
	s.want("stored", map[string]any(nil), s.stored())
	s.wantExplainedCalls()
}

// wantExplainedCalls checks that every handler succeeded and that no handler was called more often than the crashes
// explain.
func (s *crashTest) wantExplainedCalls() {
	usual := map[string]int{ // number of calls without crashes
		"create a": 1, "create b": 2, "create c": 1,
		"update u": 1, "update v": 2, "update s": 2, "delete s": 1, "delete d": 1,
	}
	for _, key := range slices.Sorted(maps.Keys(usual)) {
		if s.successCounts[key] == 0 {
			s.t.Errorf("%s never succeeded", key)
		}
		if s.callCounts[key] > usual[key]+s.kills {
			s.t.Errorf(
				"%s was called %d times: %d is usual, and there were %d crashes", key, s.callCounts[key], usual[key],
				s.kills,
			)
		}
	}
	for key := range s.callCounts {
		if usual[key] == 0 {
			s.t.Errorf("%s was called unexpectedly", key)
		}
	}
}

// measureRun returns the number of requests and the duration of a life without crashes.
func measureRun(t *testing.T) (number int, length time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s := newCrashTest(t)
		s.runWholeLife()
		number, length = s.writeCount, time.Since(s.started)
	})
	return number, length
}

func allCrashPoints(number int) []crashPoint {
	var all []crashPoint
	for n := range number {
		all = append(all, crashPoint{n + 1, false}, crashPoint{n + 1, true})
	}
	return all
}

// TestCrashes kills the operator at each request.
func TestCrashes(t *testing.T) {
	number, _ := measureRun(t)
	for _, death := range allCrashPoints(number) {
		t.Run(fmt.Sprintf("%d/%v", death.number, death.applied), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCrashTest(t, death)
				if s.runWholeLife(); s.kills != 1 {
					t.Errorf("want one crash, got %d", s.kills)
				}
			})
		})
	}
}

// TestCrashesTwice kills the operator a second time shortly after, while it restores the progress of the first life.
func TestCrashesTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("there are hundreds of pairs")
	}
	number, _ := measureRun(t)
	all := allCrashPoints(number + 2)
	for i, first := range all {
		for _, second := range all[i+1:] {
			if second.number == first.number || second.number > first.number+3 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				s := newCrashTest(t, first, second)
				if s.runWholeLife(); t.Failed() {
					t.Fatalf("the crashes were at %v and %v", first, second)
				}
			})
		}
	}
}

// TestCrashesInBetween kills the operator at moments without a write.
func TestCrashesInBetween(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	_, length := measureRun(t)
	for moment := 250 * time.Millisecond; moment < length; moment += 500 * time.Millisecond {
		t.Run(moment.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCrashTest(t)
				time.AfterFunc(moment, func() { s.kill() })
				s.runWholeLife()
			})
		})
	}
}
