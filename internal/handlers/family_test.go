package handlers_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestHandlerTriggerNames shows the word with which explanations name the trigger of a handler: that of its
// registration.
func TestHandlerTriggerNames(t *testing.T) {
	field := diff.Path{"spec", "size"}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		on      string
		follows bool
	}{
		"Owning":    {"an owning handler follows no object", handlers.Handler{Family: handlers.Parent}, "", false},
		"Reporting": {"a reporting handler follows no object", handlers.Handler{Family: handlers.Condition}, "", false},
		"Admitting": {"an admission handler follows no object",
			handlers.Handler{Family: handlers.Admitting}, "", false},
		"Acting": {"an activity handler follows no object", handlers.Handler{Family: handlers.Activity}, "", false},
		"Watching": {"an event handler is named after events",
			handlers.Handler{Family: handlers.Watching}, "event", true},
		"Tending": {"a tending handler is named after children",
			handlers.Handler{Family: handlers.Child}, "child", true},
		"Indexing": {"an indexing handler is named after the index",
			handlers.Handler{Family: handlers.Indexing}, "index", true},
		"Daemon": {
			"a background handler with a daemon is named a daemon",
			handlers.Handler{Family: handlers.Background, Background: &handlers.BackgroundOptions{Daemon: true}},
			"daemon", true,
		},
		"Timer": {
			"a background handler without a daemon is named a timer",
			handlers.Handler{Family: handlers.Background, Background: &handlers.BackgroundOptions{}}, "timer", true,
		},
		"Bare": {
			"a background handler without options is named a timer",
			handlers.Handler{Family: handlers.Background}, "timer", true,
		},
		"SubHandler": {
			"a sub-handler is named so, whatever its reason is", handlers.Handler{Root: "parent", Reason: cause.Create},
			"sub-handler", true,
		},
		"Resume": {"a handler of existing objects is named after the resume",
			handlers.Handler{Initial: true}, "resume", true},
		"ResumeOfReason": {
			"a resume handler is named after the resume, whatever its reason is",
			handlers.Handler{Initial: true, Reason: cause.Create}, "resume", true,
		},
		"Field": {"a handler of a changed field is named after the field",
			handlers.Handler{Field: field, NeedsChange: true}, "field", true},
		"Create": {
			"a create handler with a field is named after the creation",
			handlers.Handler{Reason: cause.Create, Field: field},
			"create", true,
		},
		"Delete": {"a delete handler is named after the deletion",
			handlers.Handler{Reason: cause.Delete}, "delete", true},
	} {
		t.Run(name, func(t *testing.T) {
			if on := tc.handler.VerbName(); on != tc.on && tc.follows {
				t.Errorf("%s: named after %q, want %q", tc.reason, on, tc.on)
			}
			if follows := tc.handler.FollowsEvents(); follows != tc.follows {
				t.Errorf("%s: follows objects: %v, want %v", tc.reason, follows, tc.follows)
			}
		})
	}
}

// TestIsForChildren shows that a handler of children belongs to one handler that watches them.
func TestIsForChildren(t *testing.T) {
	watched, other := &handlers.Handler{Family: handlers.Parent}, &handlers.Handler{Family: handlers.Parent}
	watched.ParentHandler, other.ParentHandler = watched, other
	for name, tc := range map[string]struct {
		reason  string
		handler *handlers.Handler
		want    bool
	}{
		"Own": {"a handler of children belongs to the handler that watches them",
			&handlers.Handler{Family: handlers.Child, ParentHandler: watched}, true},
		"Other": {"children of another watch are not for this handler",
			&handlers.Handler{Family: handlers.Child, ParentHandler: other}, false},
		"Itself": {"a handler that watches children is never called for them", watched, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.handler.IsForChildren(watched); got != tc.want {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
