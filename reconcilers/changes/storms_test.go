package changes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// storm is an object in bad times: edited, with an operator that dies and an API server that fails. The handlers carry
// its field to two places outside of the cluster.
type storm struct {
	*world
	weather *rand.Rand // what happens when
	p       *process
	stop    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	outside map[string]any // what each place was told last
	luck    *rand.Rand
	trouble int // how many more calls and writes go wrong
}

// unlucky tells whether something goes wrong now.
func (s *storm) unlucky() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == 0 || s.luck.IntN(3) > 0 {
		return false
	}
	s.trouble--
	return true
}

// carries tells a place outside what the field is.
func (s *storm) carries(place string) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		if s.unlucky() {
			return temporaryError{delay: time.Second}
		}
		s.mu.Lock()
		s.outside[place] = at(working(c), "spec", "field")
		s.mu.Unlock()
		if s.unlucky() {
			_ = takes(2*time.Second)(context.WithoutCancel(ctx), c)
		}
		return all(
			appends(owner(place), "metadata", "ownerReferences"),
			patches(at(working(c), "spec", "field"), "status", place),
		)(ctx, c)
	}
}

// begin lets an operator run until it is stopped or dies.
func (s *storm) begin() {
	s.p = s.start(
		onCreate("a", s.carries("first"), labelled), onCreate("b", s.carries("second"), labelled),
		onUpdate("u", s.carries("first"), labelled), onUpdate("v", s.carries("second"), labelled),
		onDelete("d", func(context.Context, *handlers.Invocation) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.outside = map[string]any{}
			return nil
		}, labelled),
	)
	p, stop, done := s.p, make(chan struct{}), make(chan struct{})
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

// restart ends the operator, by force or by its own will, and begins anew.
func (s *storm) restart() {
	if s.weather.IntN(3) > 0 {
		s.p.kill()
	}
	s.p.exit()
	<-s.done
	s.begin()
}

// blow makes one thing happen.
func (s *storm) blow(turn int, deadly bool) {
	time.Sleep(time.Duration(s.weather.IntN(3000)) * time.Millisecond)
	s.mu.Lock()
	s.trouble += s.weather.IntN(3)
	s.mu.Unlock()
	switch kind := s.weather.IntN(6); {
	case kind == 0:
		s.set([]any{"yes", "no"}[s.weather.IntN(2)], "metadata", "labels", "on")
	case kind < 4 && deadly:
		s.restart()
	// what was done in the last second of a life is not known to the next, so it must differ from all before
	case deadly:
		s.set(fmt.Sprint("value ", turn), "spec", "field")
	default:
		s.set(fmt.Sprint("value ", s.weather.IntN(2)), "spec", "field")
	}
}

// storms is how many there are: more of them with `make explore NAME=storms`.
func storms(t *testing.T) uint64 {
	wanted := os.Getenv("STORMS")
	switch {
	case wanted == "" && testing.Short():
		return 3
	case wanted == "":
		return 25
	}
	n, err := strconv.ParseUint(wanted, 10, 32)
	if err != nil {
		t.Fatalf("STORMS must be a number: %v", err)
	}
	return n
}

// TestStorms is about what must hold after all: the world outside is as the object says.
func TestStorms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for seed := range storms(t) {
		for _, deadly := range []bool{true, false} {
			t.Run(fmt.Sprint(seed, deadly), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &storm{world: newWorld(t), outside: map[string]any{},
						weather: rand.New(rand.NewPCG(seed, 0)), luck: rand.New(rand.NewPCG(seed, 1))}
					s.serveStatus(seed%2 == 0)
					s.set("yes", "metadata", "labels", "on")
					s.before = func(r write) error {
						if r.status { // whose refusal is final
							return nil
						}
						return s.answer(403)
					}
					s.after = func(write) error { return s.answer(504) }
					s.begin()
					for turn := range 12 {
						s.blow(turn, deadly)
					}
					s.calm()
				})
			})
		}
	}
}

func (s *storm) answer(code int) error {
	if s.unlucky() {
		return memapi.Refusal(code)
	}
	return nil
}

// calm lets everything come to rest, and looks.
func (s *storm) calm() {
	s.mu.Lock()
	s.trouble = 0
	s.mu.Unlock()
	s.set("yes", "metadata", "labels", "on")
	time.Sleep(time.Minute)
	field := s.at("spec", "field")
	s.mu.Lock()
	s.want("outside", map[string]any{"first": field, "second": field}, s.outside)
	s.mu.Unlock()
	s.wantAt("at rest", field, "status", "first")
	s.wantAt("at rest", field, "status", "second")
	s.wantHandled("at rest", field)
	s.wantClean("at rest")
	synctest.Wait() // the passes are over
	s.want("memory", true, s.p.memory.Idle())
	s.delete()
	time.Sleep(time.Minute)
	s.want("stored", map[string]any(nil), s.stored())
	s.want("outside after the deletion", map[string]any{}, s.outside)
	close(s.stop)
	<-s.done
}
