package handlers_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// People ask why a handler was called or not, and read what it is for: in the word that has registered it.
func TestWhatHandlersAreFor(t *testing.T) {
	field := diff.Path{"spec", "size"}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		on      string
		follows bool
	}{
		"Owning":    {"it says what children are", handlers.Handler{Family: handlers.Owning}, "", false},
		"Reporting": {"it says what has conditions", handlers.Handler{Family: handlers.Reporting}, "", false},
		"Admitting": {"it is asked about requests", handlers.Handler{Family: handlers.Admitting}, "", false},
		"Acting":    {"it is for no object", handlers.Handler{Family: handlers.Acting}, "", false},
		"Watching":  {"events have no reason", handlers.Handler{Family: handlers.Watching}, "event", true},
		"Tending":   {"it is told of children", handlers.Handler{Family: handlers.Tending}, "child", true},
		"Indexing":  {"an index is filled from objects", handlers.Handler{Family: handlers.Indexing}, "index", true},
		"Daemon": {
			"it runs as long as its object is there",
			handlers.Handler{Family: handlers.Spawning, Background: &handlers.Background{Daemon: true}}, "daemon", true,
		},
		"Timer": {
			"it runs now and again",
			handlers.Handler{Family: handlers.Spawning, Background: &handlers.Background{}}, "timer", true,
		},
		"Bare": {
			"without what makes it a daemon, it is none", handlers.Handler{Family: handlers.Spawning}, "timer", true,
		},
		"SubHandler": {
			"its reason is that of its parent", handlers.Handler{Root: "parent", Reason: cause.Create},
			"sub-handler", true,
		},
		"Resume": {"it is for objects that were there before", handlers.Handler{Initial: true}, "resume", true},
		"ResumeOfReason": {
			"that comes before any reason", handlers.Handler{Initial: true, Reason: cause.Create}, "resume", true,
		},
		"Field": {"it is for any reason", handlers.Handler{Field: field, NeedsChange: true}, "field", true},
		"Create": {
			"a field does not make it one of fields", handlers.Handler{Reason: cause.Create, Field: field},
			"create", true,
		},
		"Delete": {"it has the word of its reason", handlers.Handler{Reason: cause.Delete}, "delete", true},
	} {
		t.Run(name, func(t *testing.T) {
			if on := tc.handler.On(); on != tc.on && tc.follows {
				t.Errorf("%s: it is for %q, want %q", tc.reason, on, tc.on)
			}
			if follows := tc.handler.Follows(); follows != tc.follows {
				t.Errorf("%s: it is called for what happens to objects: %v, want %v", tc.reason, follows, tc.follows)
			}
		})
	}
}
