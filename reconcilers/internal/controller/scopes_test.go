package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
)

// TestScopes shows that controllers start and end with the served namespaces, and that deletions in between are
// reported.
func TestScopes(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(s *kindFixture, stop func(error))
	}{
		"Come": {
			"objects of a namespace are handled as soon as it is served", func(s *kindFixture, stop func(error)) {
				s.connection.DrainRequests()
				s.liveNamespaces.Replace([]string{"a", "b"})
				s.waitUntilSettled()
				s.requireCalls("after the second namespace is served", "c in-b")
				for _, r := range s.connection.DrainRequests() {
					if r.Namespace != "b" {
						s.t.Errorf("the first namespace is requested again: %s %s", r.Verb, r.Path)
					}
				}
				s.create("a", "another")
				s.requireCalls("the first namespace is still served", "c another")
				stop(controller.ErrRestarting)
				s.remove("a", "another")
				s.run()
				s.requireDeletions("a deletion between two runs is reported", 1)
			},
		},
		"Go": {
			"objects of a namespace that is not served any more are neither handled nor remembered",
			func(s *kindFixture, _ func(error)) {
				s.liveNamespaces.Replace([]string{"b"})
				s.waitUntilSettled()
				s.requireCalls("after the change of the served namespace", "c in-b")
				s.create("a", "another")
				s.requireCalls("an object in the namespace not served any more")
				kept := s.deps.Memory.ScopesOf(resource.GroupResource())
				if len(kept) != 1 || kept[0].Namespace != "b" {
					s.t.Errorf("memory is kept of the scopes %q, want only that of namespace b", kept)
				}
			},
		},
		"ComeBack": {
			"a namespace that is served again waits for the end of its first controller",
			func(s *kindFixture, _ func(error)) {
				for range 3 {
					s.liveNamespaces.Replace(nil)
					s.liveNamespaces.Replace([]string{"a"})
				}
				s.waitUntilSettled()
				s.liveNamespaces.Replace(nil)
				s.waitUntilSettled()
				s.liveNamespaces.Replace([]string{"a"})
				s.create("a", "another")
				s.requireCalls("when the namespace is served again", "c another")
			},
		},
		"GoneWhileNobodyRan": {
			"objects of a namespace that disappears between two runs are reported as deleted",
			func(s *kindFixture, stop func(error)) {
				stop(controller.ErrRestarting)
				s.liveNamespaces.Replace([]string{"b"})
				s.requireDeletions("before the next run", 0)
				stop = s.run()
				s.requireDeletions("the object of the namespace", 1)
				s.requireCalls("the namespace that is served now", "c in-b")
				stop(controller.ErrRestarting)
			},
		},
		"KindGone": {
			"objects of a kind that is not served any more are reported as deleted",
			func(s *kindFixture, stop func(error)) {
				stop(controller.ErrRemoved)
				s.requireDeletions("after the removal of the kind", 1)
			},
		},
		"KindGoneLater": {
			"a kind can be removed while no controller runs", func(s *kindFixture, stop func(error)) {
				stop(controller.ErrRestarting)
				s.requireDeletions("after a restart is announced", 0)
				controller.ForgetResource(s.deps, resource, s.handlers)
				s.requireDeletions("after the removal of the kind", 1)
			},
		},
		"Restart": {
			"an object that is deleted between two runs is reported by the next listing",
			func(s *kindFixture, stop func(error)) {
				s.create("a", "another")
				stop(controller.ErrRestarting)
				s.remove("a", "in-a")
				s.run()
				s.requireDeletions("only the deleted one of two objects", 1)
			},
		},
		"Deleted": {
			"a deletion is reported at once", func(s *kindFixture, _ func(error)) {
				s.remove("a", "in-a")
				s.requireDeletions("after the deletion", 1)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				s := newKindFixture(t)
				s.liveNamespaces.Replace([]string{"a"})
				s.create("a", "in-a")
				s.create("b", "in-b")
				s.addHandler(&handlers.Handler{ID: "c", Reason: cause.Create}, succeed)
				stop := s.run()
				s.requireCalls("the namespace that is served", "c in-a")
				tc.play(s, stop)
			})
		})
	}
}

// TestScopesAskForTheirNamespacesAlone shows that an operator needs no rights outside of the namespaces that it serves.
func TestScopesAskForTheirNamespacesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		s.liveNamespaces.Replace([]string{"a"})
		s.addHandler(&handlers.Handler{ID: "c", Reason: cause.Create}, succeed)
		s.run()
		s.create("a", "x")
		for _, r := range s.connection.DrainRequests() {
			if !strings.Contains(r.Path, "/namespaces/a/") {
				t.Errorf("unexpected request: %s %s", r.Verb, r.Path)
			}
		}
	})
}

// TestScopeWaitsForTheOneBefore shows that the controller of a namespace that is served again waits for the last
// handler of its predecessor. Otherwise both would handle the same objects.
func TestScopeWaitsForTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		s.liveNamespaces.Replace([]string{"a"})
		running, most := 0, 0
		s.addHandler(&handlers.Handler{ID: "c", Reason: cause.Create}, func(*handlers.Invocation) error {
			s.withLock(func() { running++; most = max(most, running) })
			time.Sleep(time.Minute)
			s.withLock(func() { running-- })
			return nil
		})
		s.run()
		s.create("a", "in-a")
		for _, served := range [][]string{nil, {"a"}, {"b"}, {"b", "c"}, {"a"}} {
			s.liveNamespaces.Replace(served)
			s.waitUntilSettled()
		}
		time.Sleep(5 * time.Minute)
		s.create("a", "another")
		time.Sleep(5 * time.Minute)
		s.requireCalls("each object once", "c in-a", "c another")
		s.withLock(func() {
			if most != 1 {
				t.Errorf("%d handlers ran at once", most)
			}
		})
	})
}
