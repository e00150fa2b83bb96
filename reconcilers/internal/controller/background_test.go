package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

func labelOf(body map[string]any) string {
	if body == nil {
		return "gone"
	}
	return (&unstructured.Unstructured{Object: body}).GetLabels()["l"]
}

// TestTimers shows that a timer ticks at its own interval for each object until that object is deleted.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		s.addHandler(&handlers.Handler{
			ID: "t", Family: handlers.Background, Background: &handlers.BackgroundOptions{Interval: time.Minute},
		}, succeed)
		s.run()
		s.create("a", "x")
		s.requireCalls("at once", "t x")
		time.Sleep(20 * time.Second)
		s.create("a", "y")
		s.requireCalls("the first tick of the second object", "t y")
		time.Sleep(2 * time.Minute)
		s.requireCalls("two minutes", "t x", "t x", "t y", "t y")
		s.remove("a", "x")
		s.requireCalls("no tick during the deletion")
		time.Sleep(2 * time.Minute)
		s.requireCalls("after the deletion of one object", "t y", "t y")
	})
}

// TestLatestState shows that a daemon reads the latest state of its object.
func TestLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		ask, seen := make(chan struct{}), make(chan string)
		s.addHandler(&handlers.Handler{
			ID: "d", Family: handlers.Background, Background: &handlers.BackgroundOptions{Daemon: true},
		}, func(c *handlers.Invocation) error {
			for range ask {
				seen <- labelOf(liveBody(c))
			}
			return nil
		})
		s.run()
		s.create("a", "x")
		for _, label := range []string{"1", "2"} {
			s.edit("a", "x", `{"metadata":{"labels":{"l":"`+label+`"}}}`)
			ask <- struct{}{}
			if got := <-seen; got != label {
				t.Errorf("the daemon reads the label %q, want %q", got, label)
			}
		}
		close(ask)
	})
}

// TestLatestStateOfEvents shows that a running event handler reads the latest state of its object, through the cache of
// the kind.
func TestLatestStateOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		var seen []string
		s.addHandler(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(c *handlers.Invocation) error {
			if c.Cause.EventType != "ADDED" {
				return nil
			}
			known := &unstructured.Unstructured{Object: c.Cause.Body()}
			key := types.NamespacedName{Namespace: known.GetNamespace(), Name: known.GetName()}
			for range 3 {
				seen = append(seen, labelOf(c.LatestState.Latest(key, known.GetUID())))
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		s.run()
		s.create("a", "x")
		for _, label := range []string{"1", "2"} {
			time.Sleep(4 * time.Second)
			s.edit("a", "x", `{"metadata":{"labels":{"l":"`+label+`"}}}`)
			time.Sleep(5 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait() // for the race detector: the handler has returned
		if d := cmp.Diff([]string{"", "1", "2"}, seen); d != "" {
			t.Errorf("the labels that the handler reads: -want, +got:\n%s", d)
		}
	})
}

// TestLatestStateOfAnother shows that a daemon that outlives its object never sees a new object of the same name.
func TestLatestStateOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		asked, seen := make(chan struct{}), make(chan string, 1)
		first := true
		s.addHandler(&handlers.Handler{
			ID: "d", Family: handlers.Background, Background: &handlers.BackgroundOptions{Daemon: true},
		}, func(c *handlers.Invocation) error {
			if first {
				first = false
				<-asked
				seen <- labelOf(liveBody(c))
			}
			return nil
		})
		s.run()
		s.create("a", "x")
		s.server.Discard(serverResource, "a", "x")
		s.waitUntilSettled()
		s.create("a", "x")
		s.edit("a", "x", `{"metadata":{"labels":{"l":"another"}}}`)
		close(asked)
		if got := <-seen; got != "gone" {
			t.Errorf("the daemon reads the label %q of another object", got)
		}
		s.waitUntilSettled()
	})
}

// liveBody returns the latest state of the object of a background handler.
func liveBody(call *handlers.Invocation) map[string]any {
	return (&cause.Cause{Object: call.LiveObject.Object()}).Body()
}
