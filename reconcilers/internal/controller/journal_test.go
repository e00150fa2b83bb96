package controller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// TestPartsShareOneJournal shows that all parts of a controller record their decisions about one object in the same
// journal.
func TestPartsShareOneJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newKindFixture(t)
		told := journaltest.NewReader(t, configMapKind.GroupKind())
		s.deps.Journal = told.Journal
		no := []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) { return false, nil }}
		s.addHandler(&handlers.Handler{ID: "e", Family: handlers.Watching, Filters: no}, succeed)
		s.addHandler(&handlers.Handler{ID: "t", Family: handlers.Background, Background: &handlers.BackgroundOptions{
			Interval: time.Hour,
		}}, succeed)
		s.addHandler(&handlers.Handler{ID: "c", Reason: cause.Create}, func(*handlers.Invocation) error {
			return errors.New("boo")
		})
		s.run()
		s.create("a", "x")
		all := told.EntryLines("a", "x")
		for part, want := range map[string]string{
			"the watch": "event ADDED", "the event handlers": "look event ADDED; e not: Filters says filtered out",
			"the background handlers": "look background; t", "the calls of the timer": "call t for timer, attempt 1: " +
				"succeeded",
			"the pass": "look create; c", "the calls": "call c for create, attempt 1: failed; retrying: boo",
			"the writes": "write metadata.finalizers",
		} {
			if !slices.ContainsFunc(all, func(line string) bool { return strings.HasPrefix(line, want) }) {
				t.Errorf("%s recorded nothing that begins with %q:\n%s", part, want, strings.Join(all, "\n"))
			}
		}
	})
}
