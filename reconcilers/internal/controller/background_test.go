package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func labelOf(body map[string]any) string {
	if body == nil {
		return "gone"
	}
	return (&unstructured.Unstructured{Object: body}).GetLabels()["l"]
}

// Timers tick for as long as their object is there, each in its own time, whatever happens to others.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.handle(&handlers.Handler{
			ID: "t", Family: handlers.Spawning, Background: &handlers.Background{Interval: time.Minute},
		}, succeeding)
		s.run()
		s.create("a", "x")
		s.want("at once", "t x")
		time.Sleep(20 * time.Second)
		s.create("a", "y")
		s.want("another", "t y")
		time.Sleep(2 * time.Minute)
		s.want("two minutes", "t x", "t x", "t y", "t y")
		s.remove("a", "x")
		s.want("while it is being removed")
		time.Sleep(2 * time.Minute)
		s.want("one is gone", "t y", "t y")
	})
}

// What runs beside an object sees it as it is by now.
func TestLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		ask, seen := make(chan struct{}), make(chan string)
		s.handle(&handlers.Handler{
			ID: "d", Family: handlers.Spawning, Background: &handlers.Background{Daemon: true},
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
				t.Errorf("it sees the label %q, not %q", got, label)
			}
		}
		close(ask)
	})
}

// A daemon that goes on after its object never sees another one that has the name now.
func TestLatestStateOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		asked, seen := make(chan struct{}), make(chan string, 1)
		first := true
		s.handle(&handlers.Handler{
			ID: "d", Family: handlers.Spawning, Background: &handlers.Background{Daemon: true},
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
		s.server.Discard(stored, "a", "x")
		s.settle()
		s.create("a", "x")
		s.edit("a", "x", `{"metadata":{"labels":{"l":"another"}}}`)
		close(asked)
		if got := <-seen; got != "gone" {
			t.Errorf("it sees the label %q", got)
		}
		s.settle()
	})
}

// liveBody is the newest state of the object of a function in the background.
func liveBody(call *handlers.Invocation) map[string]any {
	return (&cause.Cause{Object: call.Live.Object()}).Body()
}
