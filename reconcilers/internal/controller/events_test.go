package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestWritesOfEventHandlers shows that changes by event handlers are written once, and not at all to a deleted object.
func TestWritesOfEventHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		gone := false
		s.addHandler(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(c *handlers.Invocation) error {
			if gone {
				s.server.Discard(serverResource, "a", "x")
				time.Sleep(100 * time.Millisecond) // until the deletion reaches the cache
			}
			return c.Writer.AddTransform(func(body map[string]any) error {
				body["data"] = map[string]any{"seen": "yes"}
				return nil
			})
		})
		s.run()
		s.create("a", "x")
		s.requireCalls("an own write is another event", "e x", "e x")
		data, _ := s.server.Object(serverResource, "a", "x")["data"].(map[string]any)
		if data["seen"] != "yes" {
			t.Errorf("the written data is %v", data)
		}
		s.connection.DrainRequests()
		s.withLock(func() { gone = true })
		s.edit("a", "x", `{"data":{"seen":"no"}}`)
		for _, r := range s.connection.DrainRequests() {
			if r.Verb == "patch" {
				t.Errorf("a deleted object is patched: %s", r.Body)
			}
		}
	})
}

// TestEventsOfAShortLife shows that changes by event handlers to an object that was deleted before the call are neither
// written nor an error.
func TestEventsOfAShortLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		s.deps.Settings.Workers = 1
		s.addHandler(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(c *handlers.Invocation) error {
			if name(c) == "busy" {
				time.Sleep(10 * time.Second)
				return nil
			}
			return c.Writer.AddTransform(func(body map[string]any) error {
				body["data"] = map[string]any{"seen": "yes"}
				return nil
			})
		})
		s.run()
		s.create("a", "busy")
		s.create("a", "x")
		s.remove("a", "x")
		s.requireCalls("while the only worker is busy", "e busy")
		time.Sleep(20 * time.Second)
		s.requireCalls("when the worker is free again", "e x", "e x")
		if lines := s.linesWith(`"error"=`); len(lines) > 0 {
			t.Errorf("errors are logged: %v", lines)
		}
		for _, r := range s.connection.DrainRequests() {
			if r.Verb == "patch" {
				t.Errorf("a deleted object is patched: %s", r.Body)
			}
		}
	})
}

// TestTooManyEvents shows that events are dropped and logged if an object changes faster than its event handlers run.
func TestTooManyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		s.addHandler(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(*handlers.Invocation) error {
			time.Sleep(time.Hour)
			return nil
		})
		stop := s.run()
		s.create("a", "x")
		if lines := s.linesWith("Dropped the oldest event"); len(lines) > 0 {
			t.Errorf("an event is dropped too early: %q", lines)
		}
		for n := range 260 {
			s.edit("a", "x", fmt.Sprintf(`{"data":{"n":"%d"}}`, n))
		}
		lines := s.linesWith("Dropped the oldest event")
		if len(lines) != 4 || !strings.Contains(lines[0], `"name"="x"`) {
			t.Errorf("want one line for each of four dropped events, got %q", lines)
		}
		stop(nil)
	})
}
