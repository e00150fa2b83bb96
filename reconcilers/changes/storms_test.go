package changes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/storms"
)

// storm is an object that is edited while its operator crashes and the API server fails. The handlers copy its field
// to two places outside of the cluster.
type storm struct {
	*harness
	eventRand *rand.Rand // decides what happens
	process   *process
	stop      chan struct{}
	done      chan struct{}

	mu                sync.Mutex
	externalValues    map[string]any // the last value of each place
	failureRand       *rand.Rand
	remainingFailures int // number of calls and writes that still go wrong
}

// shouldFail reports whether the present call or write goes wrong.
func (s *storm) shouldFail() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remainingFailures == 0 || s.failureRand.IntN(3) > 0 {
		return false
	}
	s.remainingFailures--
	return true
}

// copyField returns a handler that copies the field to a place outside.
func (s *storm) copyField(place string) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		if s.shouldFail() {
			return temporaryError{delay: time.Second}
		}
		s.mu.Lock()
		s.externalValues[place] = at(working(c), "spec", "field")
		s.mu.Unlock()
		if s.shouldFail() {
			_ = takes(2*time.Second)(context.WithoutCancel(ctx), c)
		}
		return all(
			appends(owner(place), "metadata", "ownerReferences"),
			patches(at(working(c), "spec", "field"), "status", place),
		)(ctx, c)
	}
}

// begin runs an operator until it is stopped or killed.
func (s *storm) begin() {
	s.process = s.start(
		onCreate("a", s.copyField("first"), ifLabelled), onCreate("b", s.copyField("second"), ifLabelled),
		onUpdate("u", s.copyField("first"), ifLabelled), onUpdate("v", s.copyField("second"), ifLabelled),
		onDelete("d", func(context.Context, *handlers.Invocation) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.externalValues = map[string]any{}
			return nil
		}, ifLabelled),
	)
	p, stop, done := s.process, make(chan struct{}), make(chan struct{})
	s.stop, s.done = stop, done
	go func() {
		defer close(done)
		for p.ctx.Err() == nil && !p.gone {
			if !p.step() {
				continue
			}
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
}

// restart ends the operator by a kill or an exit, and starts another one.
func (s *storm) restart() {
	if s.eventRand.IntN(3) > 0 {
		s.process.kill()
	}
	s.process.exit()
	<-s.done
	s.begin()
}

// causeEvent makes one random event happen.
func (s *storm) causeEvent(turn int, deadly bool) {
	time.Sleep(time.Duration(s.eventRand.IntN(3000)) * time.Millisecond)
	s.mu.Lock()
	s.remainingFailures += s.eventRand.IntN(3)
	s.mu.Unlock()
	switch kind := s.eventRand.IntN(6); {
	case kind == 0:
		s.set([]any{"yes", "no"}[s.eventRand.IntN(2)], "metadata", "labels", "on")
	case kind < 4 && deadly:
		s.restart()
	// a crash can lose the last second of a life, so the value must differ from all earlier ones
	case deadly:
		s.set(fmt.Sprint("value ", turn), "spec", "field")
	default:
		s.set(fmt.Sprint("value ", s.eventRand.IntN(2)), "spec", "field")
	}
}

// TestStorms shows that the places outside have the field of the object after any sequence of failures.
func TestStorms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for seed := range storms.Count(t, 3, 25) {
		for _, deadly := range []bool{true, false} {
			t.Run(fmt.Sprint(seed, deadly), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &storm{harness: newHarness(t), externalValues: map[string]any{},
						eventRand: rand.New(rand.NewPCG(seed, 0)), failureRand: rand.New(rand.NewPCG(seed, 1))}
					s.serveStatus(seed%2 == 0)
					s.set("yes", "metadata", "labels", "on")
					s.before = func(r write) error {
						if r.status { // its refusal is final
							return nil
						}
						return s.answer(403)
					}
					s.after = func(write) error { return s.answer(504) }
					s.begin()
					for turn := range 12 {
						s.causeEvent(turn, deadly)
					}
					s.requireSettled()
				})
			})
		}
	}
}

func (s *storm) answer(code int) error {
	if s.shouldFail() {
		return memapi.NewRefusal(code)
	}
	return nil
}

// requireSettled ends all failures, waits until the object is settled, and checks it.
func (s *storm) requireSettled() {
	s.mu.Lock()
	s.remainingFailures = 0
	s.mu.Unlock()
	s.set("yes", "metadata", "labels", "on")
	time.Sleep(time.Minute)
	field := s.at("spec", "field")
	s.mu.Lock()
	s.want("outside", map[string]any{"first": field, "second": field}, s.externalValues)
	s.mu.Unlock()
	s.wantAt("settled", field, "status", "first")
	s.wantAt("settled", field, "status", "second")
	s.wantHandled("settled", field)
	s.wantClean("settled")
	synctest.Wait() // all passes have ended
	s.want("memory", true, s.process.memory.IsEmpty())
	s.delete()
	time.Sleep(time.Minute)
	s.want("stored", map[string]any(nil), s.stored())
	s.want("outside after the deletion", map[string]any{}, s.externalValues)
	close(s.stop)
	<-s.done
}
