package reconcilers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

// TestIdleWithoutPermission shows that the end of the last attempt does not open the gate while there is no permission.
func TestIdleWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{}
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		g.Enter()
		time.Sleep(time.Hour)
		_, _, changed := g.currentOpening()
		g.Leave()
		select {
		case <-changed:
			t.Error("the gate must not signal that it opens")
		default:
		}
		if _, open, _ := g.currentOpening(); open {
			t.Error("the gate must stay closed")
		}
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		if _, open, _ := g.currentOpening(); !open {
			t.Error("with a permission and without attempts, the gate must be open")
		}
	})
}

func TestWithoutAGate(t *testing.T) {
	var g *Gate
	if !g.mayWrite(t.Context(), "") || !(opening{}).Open() || !(opening{}).Enter() {
		t.Error("without a gate, everything must be allowed")
	}
}

// TestPosters shows the posters of handlers: none, one for events, or one for events and log lines.
func TestPosters(t *testing.T) {
	poster := posting.New(nil, posting.Options{})
	if _, silent := (Options{NoPosting: true}).posterFor(poster).(posting.Silent); !silent {
		t.Error("with NoPosting, the poster must be silent")
	}
	lines := Options{}
	lines.Posting.Loggers = true
	if _, both := lines.posterFor(poster).(posting.LinePoster); !both {
		t.Error("with Posting.Loggers, log lines must be posted")
	}
	if lines.Posting.Loggers = false; lines.posterFor(poster) != handlers.EventPoster(poster) {
		t.Error("without Posting.Loggers, log lines must not be posted")
	}
}

// TestIndexedSelectors shows that only selectors with index handlers are indexed.
func TestIndexedSelectors(t *testing.T) {
	indexed, other := discovery.Selector{Plural: "a"}, discovery.Selector{Plural: "b"}
	o := Options{Registrations: []Registration{
		{Selector: indexed, Handler: &handlers.Handler{Family: handlers.Indexing, Index: &handlers.IndexWork{}}},
		{Selector: other, Handler: &handlers.Handler{}},
	}}
	if !o.hasIndices(indexed) || o.hasIndices(other) {
		t.Errorf("indexed: %v, want true; the other one: %v, want false", o.hasIndices(indexed), o.hasIndices(other))
	}
}
