package reconcilers

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// reviewInterval is how often what is served is compared with what the API server has, if nobody has doubts earlier:
// extension servers come and go without anything that can be watched.
const reviewInterval = 5 * time.Minute

// settling is how many rounds follow a doubt: the API server's lists are behind what happens to its CRDs.
const settling = 3

// serving finds what the selectors mean, and keeps it served: a CRD may be installed after the operator, be changed, or
// go and come back.
type serving struct {
	registrations []Registration
	server        resources.Getter
	// run serves a resource until the context ends, and returns when its last handler has returned.
	run func(ctx context.Context, r Resource, own []*handlers.Handler)
	// announce is told what is to be served, before any of it is; nil is not.
	announce func(ctx context.Context, all []wanted)
	// watch has doubts whenever a CRD changes; nil is for none.
	watch func(ctx context.Context, doubt func())
	// doubts ask for a review: a kind was not found where it had been, or may be found now.
	doubts chan struct{}

	running  sync.WaitGroup
	meanings map[Selector]meaning
	services map[schema.GroupVersionResource]service
	reported map[Selector]string
}

// service is a resource being served, or one that was.
type service struct {
	wanted
	stop  context.CancelCauseFunc
	done  chan struct{}
	ended bool // it was told to stop
}

// over tells whether the service has ended by itself, as it was refused: what was in its way may be gone by now.
func (s service) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// wanted is a resource with all its handlers.
type wanted struct {
	Resource
	own []*handlers.Handler
}

func newServing(registrations []Registration, server resources.Getter) *serving {
	return &serving{
		registrations: registrations, server: server, doubts: make(chan struct{}, 1),
		meanings: map[Selector]meaning{}, services: map[schema.GroupVersionResource]service{},
		reported: map[Selector]string{},
	}
}

// doubt never blocks: one review is enough for all doubts before it.
func (s *serving) doubt() {
	select {
	case s.doubts <- struct{}{}:
	default:
	}
}

func patience() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}

// discover serves what the selectors mean until the context ends, and returns when the last handler has returned.
func (s *serving) discover(ctx context.Context) {
	defer s.rest()
	if s.watch != nil {
		s.running.Go(func() { s.watch(ctx, s.doubt) })
	}
	all := selectorsOf(s.registrations)
	asked, pause, unsettled := all, patience(), 0
	reviews := time.NewTicker(reviewInterval)
	defer reviews.Stop()
	for {
		if s.round(ctx, asked) && len(asked) < len(all) {
			s.round(ctx, all) // what is found later belongs to what was found before
		}
		waiting := s.waiting()
		var again <-chan time.Time
		if len(waiting) > 0 || unsettled > 0 {
			again = time.After(pause.Step())
		}
		asked = all
		select {
		case <-ctx.Done():
			return
		case <-again:
			if unsettled--; unsettled < 0 {
				asked = waiting
			}
		case <-s.doubts:
			pause, unsettled = patience(), settling
		case <-reviews.C:
		}
	}
}

// rest waits for the last handler, and forgets what was served: the next time, all is looked for anew.
func (s *serving) rest() {
	s.running.Wait()
	clear(s.services)
	clear(s.meanings)
}

// round asks what the selectors mean now, and serves that. A server that does not answer proves nothing. It tells
// whether anything was found.
func (s *serving) round(ctx context.Context, asked []Selector) (found bool) {
	inquiry := newInquiry(s.server, s.registrations)
	for _, selector := range asked {
		before := s.meanings[selector]
		is, err := inquiry.find(ctx, selector, before.served)
		if err == nil || unserved(err) {
			s.meanings[selector] = is
			found = found || !slices.Equal(before.served, is.served)
		}
		s.report(ctx, selector, is, err)
	}
	s.adjust(ctx)
	return found
}

// waiting are the selectors that mean nothing yet, or of which not all is known.
func (s *serving) waiting() (waiting []Selector) {
	for _, selector := range selectorsOf(s.registrations) {
		if m := s.meanings[selector]; len(m.served) == 0 || m.silent {
			waiting = append(waiting, selector)
		}
	}
	return waiting
}
