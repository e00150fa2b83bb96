package reconcilers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

// TestPermissionAfterItsEnd shows that after a permission has ended, nothing may be written until all attempts from
// before have ended, even with a new permission: other operators may have acted in the meantime.
func TestPermissionAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{}
		want := func(when string, may bool) {
			t.Helper()
			if g.mayWrite(t.Context(), "") != may || g.Open() != may {
				t.Errorf("%s: may write: %v, open: %v", when, g.mayWrite(t.Context(), ""), g.Open())
			}
		}
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		g.Enter()
		g.Enter()
		want("during the permission", true)
		time.Sleep(time.Hour)
		want("after the permission", false)
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		want("with a new permission", false)
		g.Leave()
		want("after one of two attempts has ended", false)
		g.Leave()
		want("after both attempts have ended", true)
		permission := g.WritePermission()
		time.Sleep(time.Hour)
		synctest.Wait()
		want("after the second permission", false)
		if _, open, _ := g.currentOpening(); open || permission.Err() == nil {
			t.Errorf("the second end was not signalled: open: %v, its permission: %v", open, permission.Err())
		}
	})
}

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
