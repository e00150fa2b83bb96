package reconcilers

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// report says once for each reason why a kind is not served, or not all of the kinds.
func (s *serving) report(ctx context.Context, selector Selector, found meaning, err error) {
	reason := found.unable
	if err != nil {
		reason = err.Error()
	}
	switch {
	case ctx.Err() != nil || s.reported[selector] == reason:
		return
	case err != nil && len(s.meanings[selector].served) > 0:
		return // what was found before is served still
	}
	s.reported[selector] = reason
	log := logf.FromContext(ctx).WithValues("selector", selector.String(), "handlers", s.idsFor(selector))
	switch {
	case err != nil:
		log.Error(err, "A kind is not served; its handlers wait for it. If it is a custom one, install its CRD")
	case reason != "":
		log.Info("Some of the selected kinds are not served", "reason", reason)
	}
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

// adjust stops what is no more, or is not what it was, and starts what is to be served now.
func (s *serving) adjust(ctx context.Context) {
	all := s.wants()
	still := map[schema.GroupVersionResource]bool{}
	for _, w := range all {
		is := s.services[w.GroupVersionResource()]
		still[w.GroupVersionResource()] = is.stop != nil && is.Resource == w.Resource
	}
	for key, is := range s.services {
		if is.ended || still[key] || ctx.Err() != nil {
			continue
		}
		logf.FromContext(ctx).Info(
			"A kind is not what it was, or is no more; it is looked for anew", "kind", is.GroupVersionKind.String(),
		)
		is.stop(reasonFor(is.Resource, all))
		is.ended = true
		s.services[key] = is
	}
	if s.announce != nil {
		s.announce(ctx, all)
	}
	for _, w := range all {
		if is := s.services[w.GroupVersionResource()]; is.stop == nil || is.ended || is.over() || !slices.Equal(
			is.own, w.own,
		) {
			s.start(ctx, w)
		}
	}
}

// reasonFor is why a service ends: its objects are served another way, or not at all.
func reasonFor(r Resource, all []wanted) error {
	if slices.ContainsFunc(all, func(w wanted) bool { return w.GroupResource() == r.GroupResource() }) {
		return errMoved
	}
	return errVanished
}

// start serves a resource with all its handlers. If its objects were served before, it goes over without an overlap.
func (s *serving) start(ctx context.Context, w wanted) {
	before := s.before(w.Resource)
	ctx, cancel := context.WithCancelCause(ctx)
	now := service{wanted: w, stop: cancel, done: make(chan struct{})}
	s.services[w.GroupVersionResource()] = now
	s.running.Go(func() {
		defer close(now.done)
		for _, other := range before {
			other.stop(errMoved)
			<-other.done
		}
		s.run(ctx, w.Resource, w.own)
	})
}

// before are the services that must end before one of the resource can begin: its own, and those of its other versions
// that are ending.
func (s *serving) before(r Resource) (all []service) {
	for key, other := range s.services {
		if key == r.GroupVersionResource() || other.ended && other.GroupResource() == r.GroupResource() {
			all = append(all, other)
		}
	}
	return all
}
