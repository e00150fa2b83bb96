package reconcilers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// report says once for each reason why a kind is not served.
func (s *serving) report(ctx context.Context, selector Selector, err error) {
	if s.reported[selector] == err.Error() || ctx.Err() != nil {
		return
	}
	s.reported[selector] = err.Error()
	logf.FromContext(ctx).Error(err, "A kind is not served; its handlers wait for it. If it is a custom one, install its CRD",
		"selector", selector.String(), "handlers", s.idsFor(selector))
}

// idsFor are the handlers that wait for what the selector means.
func (s *serving) idsFor(selector Selector) []string {
	var ids []string
	for _, r := range s.registrations {
		if r.Selector == selector {
			ids = append(ids, r.Handler.ID)
		}
	}
	return ids
}

// start serves a resource with all its handlers. If it was served before, it goes over without an overlap.
func (s *serving) start(ctx context.Context, r Resource) {
	before := s.services[r.GroupVersionKind]
	ctx, stop := context.WithCancel(ctx)
	now := service{stop: stop, done: make(chan struct{})}
	s.services[r.GroupVersionKind] = now
	own := s.handlersOf(r.GroupVersionKind)
	s.running.Go(func() {
		defer close(now.done)
		if before.stop != nil {
			before.stop()
			<-before.done
		}
		s.run(ctx, r, own)
	})
}

// handlersOf gives the handlers of all selectors that mean the kind, in the order of registration.
func (s *serving) handlersOf(gvk schema.GroupVersionKind) []*handlers.Handler {
	var own []*handlers.Handler
	for _, r := range s.registrations {
		if resource, found := s.resolved[r.Selector]; found && resource.GroupVersionKind == gvk {
			own = append(own, r.Handler)
		}
	}
	return own
}

// review stops what is no more, or is not what it was, and gives its selectors. A server that does not answer proves
// nothing.
func (s *serving) review(ctx context.Context) (lost []Selector) {
	inquiry := s.inquire()
	gone := map[schema.GroupVersionKind]bool{}
	for selector, was := range s.resolved {
		is, err := inquiry.find(ctx, selector)
		if err == nil && is != was || unserved(err) {
			gone[was.GroupVersionKind] = true
		}
	}
	for _, selector := range selectorsOf(s.registrations) {
		if was, found := s.resolved[selector]; found && gone[was.GroupVersionKind] {
			delete(s.resolved, selector)
			lost = append(lost, selector)
		}
	}
	for gvk := range gone {
		logf.FromContext(ctx).Info("A kind is not what it was, or is no more; it is looked for anew", "kind", gvk.String())
		s.services[gvk].stop()
	}
	return lost
}
