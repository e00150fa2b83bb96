package reconcilers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// reviewInterval is how often what is served is compared with what the API server has, if nobody has doubts earlier: a
// CRD may get a status subresource, and no watch says so.
const reviewInterval = 5 * time.Minute

// serving finds what the selectors mean, and keeps it served: a CRD may be installed after the operator, be changed, or
// go and come back.
type serving struct {
	registrations []Registration
	lister        Lister
	server        resources.Getter // for selectors that say less than a group and a version
	// run serves a resource until the context ends, and returns when its last handler has returned.
	run func(ctx context.Context, r Resource, own []*handlers.Handler)
	// doubts ask for a review: a kind was not found where it had been.
	doubts chan struct{}

	running  sync.WaitGroup
	resolved map[Selector]Resource
	services map[schema.GroupVersionKind]service
	reported map[Selector]string
}

// service is a resource being served, or one that was.
type service struct {
	stop context.CancelFunc
	done chan struct{}
}

func newServing(registrations []Registration, lister Lister) *serving {
	return &serving{
		registrations: registrations, lister: lister, doubts: make(chan struct{}, 1),
		resolved: map[Selector]Resource{}, services: map[schema.GroupVersionKind]service{}, reported: map[Selector]string{},
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
	defer s.running.Wait()
	waiting, pause := selectorsOf(s.registrations), patience()
	reviews := time.NewTicker(reviewInterval)
	defer reviews.Stop()
	for {
		waiting = s.serve(ctx, waiting)
		var again <-chan time.Time
		if len(waiting) > 0 {
			again = time.After(pause.Step())
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
			continue
		case <-s.doubts:
		case <-reviews.C:
		}
		if lost := s.review(ctx); len(lost) > 0 {
			waiting, pause = append(waiting, lost...), patience()
		}
	}
}

func (s *serving) inquire() inquiry {
	return inquiry{lister: s.lister, answers: map[schema.GroupVersion]answer{}, server: s.server, scans: map[string]scan{}}
}

// serve starts what can be found now, and gives the selectors that cannot.
func (s *serving) serve(ctx context.Context, wanted []Selector) (missing []Selector) {
	inquiry := s.inquire()
	var found []schema.GroupVersionKind
	resources := map[schema.GroupVersionKind]Resource{}
	for _, selector := range wanted {
		resource, err := inquiry.find(ctx, selector)
		if err != nil {
			s.report(ctx, selector, err)
			missing = append(missing, selector)
			continue
		}
		delete(s.reported, selector)
		s.resolved[selector] = resource
		if _, known := resources[resource.GroupVersionKind]; !known {
			found = append(found, resource.GroupVersionKind)
		}
		resources[resource.GroupVersionKind] = resource
	}
	for _, gvk := range found {
		s.start(ctx, resources[gvk])
	}
	return missing
}
