package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
)

func TestScopes(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(s *site, stop func(error))
	}{
		"Come": {
			"the objects of a namespace are handled as soon as it is served", func(s *site, stop func(error)) {
				s.connection.Drain()
				s.live.Set([]string{"a", "b"})
				s.settle()
				s.want("the other one", "c in-b")
				for _, r := range s.connection.Drain() {
					if r.Namespace != "b" {
						s.t.Errorf("the first one is not left alone: %s %s", r.Verb, r.Path)
					}
				}
				s.create("a", "another")
				s.want("the first one goes on", "c another")
				stop(controller.ErrRestarting)
				s.remove("a", "another")
				s.run()
				s.wantGone("what is known of it is kept", 1)
			},
		},
		"Go": {
			"those of one that is served no more are let be, and nothing is kept of them",
			func(s *site, _ func(error)) {
				s.live.Set([]string{"b"})
				s.settle()
				s.want("the other one", "c in-b")
				s.create("a", "another")
				s.want("nobody serves it")
				if kept := s.deps.Memory.Namespaces(resource.GroupResource()); len(kept) != 1 || kept[0] != "b" {
					s.t.Errorf("memory is kept of %q", kept)
				}
			},
		},
		"ComeBack": {
			"a namespace that is served again waits for the end of its first controller", func(s *site, _ func(error)) {
				for range 3 {
					s.live.Set(nil)
					s.live.Set([]string{"a"})
				}
				s.settle()
				s.live.Set(nil)
				s.settle()
				s.live.Set([]string{"a"})
				s.create("a", "another")
				s.want("it is served again", "c another")
			},
		},
		"GoneWhileNobodyRan": {
			"a namespace that vanished meanwhile is forgotten with its objects", func(s *site, stop func(error)) {
				stop(controller.ErrRestarting)
				s.live.Set([]string{"b"})
				s.wantGone("nobody has looked yet", 0)
				stop = s.run()
				s.wantGone("its object is", 1)
				s.want("the other one", "c in-b")
				stop(controller.ErrRestarting)
			},
		},
		"KindGone": {
			"a kind that is not served any more has no objects", func(s *site, stop func(error)) {
				stop(controller.ErrRemoved)
				s.wantGone("all of them", 1)
			},
		},
		"KindGoneLater": {
			"that may be known when nothing runs", func(s *site, stop func(error)) {
				stop(controller.ErrRestarting)
				s.wantGone("it may go on", 0)
				controller.Forget(s.deps, resource, s.handlers)
				s.wantGone("it does not", 1)
			},
		},
		"Restart": {
			"an object that went while nothing ran is told of", func(s *site, stop func(error)) {
				s.create("a", "another")
				stop(controller.ErrRestarting)
				s.remove("a", "in-a")
				s.run()
				s.wantGone("the listing shows it, and the other one", 1)
			},
		},
		"Deleted": {
			"an object that goes is told of", func(s *site, _ func(error)) {
				s.remove("a", "in-a")
				s.wantGone("at once", 1)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.live.Set([]string{"a"})
				s.create("a", "in-a")
				s.create("b", "in-b")
				s.handle(&handlers.Handler{ID: "c", Reason: cause.Create}, succeeding)
				stop := s.run()
				s.want("the namespace that is served", "c in-a")
				tc.play(s, stop)
			})
		})
	}
}

// An operator that serves some namespaces needs no rights in others.
func TestScopesAskForTheirNamespacesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.live.Set([]string{"a"})
		s.handle(&handlers.Handler{ID: "c", Reason: cause.Create}, succeeding)
		s.run()
		s.create("a", "x")
		for _, r := range s.connection.Drain() {
			if !strings.Contains(r.Path, "/namespaces/a/") {
				t.Errorf("asked for %s %s", r.Verb, r.Path)
			}
		}
	})
}

// The last handler of a namespace may take its time. If the namespace is served again meanwhile, its new controller
// waits, as both would handle the same objects.
func TestScopeWaitsForTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.live.Set([]string{"a"})
		running, most := 0, 0
		s.handle(&handlers.Handler{ID: "c", Reason: cause.Create}, func(*handlers.Invocation) error {
			s.change(func() { running++; most = max(most, running) })
			time.Sleep(time.Minute)
			s.change(func() { running-- })
			return nil
		})
		s.run()
		s.create("a", "in-a")
		for _, served := range [][]string{nil, {"a"}, {"b"}, {"b", "c"}, {"a"}} {
			s.live.Set(served)
			s.settle()
		}
		time.Sleep(5 * time.Minute)
		s.create("a", "another")
		time.Sleep(5 * time.Minute)
		s.want("both, once", "c in-a", "c another")
		s.change(func() {
			if most != 1 {
				t.Errorf("%d handlers of one object at once", most)
			}
		})
	})
}
