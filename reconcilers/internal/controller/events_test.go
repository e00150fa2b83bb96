package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// What handlers of events do to their object is written once, and not at all to an object that is gone.
func TestWritesOfEventHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		gone := false
		s.handle(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(c *handlers.Invocation) error {
			if gone {
				s.server.Discard(stored, "a", "x")
				time.Sleep(100 * time.Millisecond) // the cache knows
			}
			return c.Writes.Remember(func(body map[string]any) error {
				body["data"] = map[string]any{"seen": "yes"}
				return nil
			})
		})
		s.run()
		s.create("a", "x")
		s.want("its own write is another event", "e x", "e x")
		data, _ := s.server.Object(stored, "a", "x")["data"].(map[string]any)
		if data["seen"] != "yes" {
			t.Errorf("written is %v", data)
		}
		s.connection.Drain()
		s.change(func() { gone = true })
		s.edit("a", "x", `{"data":{"seen":"no"}}`)
		for _, r := range s.connection.Drain() {
			if r.Verb == "patch" {
				t.Errorf("an object that is gone is written to: %s", r.Body)
			}
		}
	})
}

// What handlers of events do to an object that had gone before they were called is no write, and no error.
func TestEventsOfAShortLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.deps.Settings.Workers = 1
		s.handle(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(c *handlers.Invocation) error {
			if name(c) == "busy" {
				time.Sleep(10 * time.Second)
				return nil
			}
			return c.Writes.Remember(func(body map[string]any) error {
				body["data"] = map[string]any{"seen": "yes"}
				return nil
			})
		})
		s.run()
		s.create("a", "busy")
		s.create("a", "x")
		s.remove("a", "x")
		s.want("the only worker is busy", "e busy")
		time.Sleep(20 * time.Second)
		s.want("it is free again", "e x", "e x")
		if lines := s.lines(`"error"=`); len(lines) > 0 {
			t.Errorf("there are errors: %v", lines)
		}
		for _, r := range s.connection.Drain() {
			if r.Verb == "patch" {
				t.Errorf("an object that is gone is written to: %s", r.Body)
			}
		}
	})
}

// Nobody is called for all the events of an object that changes faster than its handlers: that is told.
func TestTooManyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.handle(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(*handlers.Invocation) error {
			time.Sleep(time.Hour)
			return nil
		})
		stop := s.run()
		s.create("a", "x")
		if lines := s.lines("Dropped the oldest event"); len(lines) > 0 {
			t.Errorf("no event is lost yet: %q", lines)
		}
		for n := range 260 {
			s.edit("a", "x", fmt.Sprintf(`{"data":{"n":"%d"}}`, n))
		}
		lines := s.lines("Dropped the oldest event")
		if len(lines) != 4 || !strings.Contains(lines[0], `"name"="x"`) {
			t.Errorf("want a line for each of four events: %q", lines)
		}
		stop(nil)
	})
}
