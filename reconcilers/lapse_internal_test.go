package reconcilers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

// What has begun before the end of a permission knows nothing of what others have done since: nothing is written before
// that has ended, even if there is permission again.
func TestPermissionAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{}
		want := func(when string, may bool) {
			t.Helper()
			if g.mayWrite("") != may || g.Open() != may {
				t.Errorf("%s: may write: %v, open: %v", when, g.mayWrite(""), g.Open())
			}
		}
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		g.Enter()
		g.Enter()
		want("within it", true)
		time.Sleep(time.Hour)
		want("after it", false)
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		want("given again", false)
		g.Leave()
		want("one of two has ended", false)
		g.Leave()
		want("both have", true)
		permission := g.Permission()
		time.Sleep(time.Hour)
		synctest.Wait()
		want("after that, too", false)
		if _, open, _ := g.state(); open || permission.Err() == nil {
			t.Errorf("nobody is told of the second end: open: %v, its permission: %v", open, permission.Err())
		}
	})
}

// The last end of what was running opens nothing as long as there is no permission.
func TestIdleWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{}
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		g.Enter()
		time.Sleep(time.Hour)
		_, _, changed := g.state()
		g.Leave()
		select {
		case <-changed:
			t.Error("it is told that the gate opens")
		default:
		}
		if _, open, _ := g.state(); open {
			t.Error("the gate is open")
		}
		g.AllowWritesUntil(time.Now().Add(time.Minute))
		if _, open, _ := g.state(); !open {
			t.Error("with a permission, and nothing running, the gate is closed")
		}
	})
}

func TestWithoutAGate(t *testing.T) {
	var g *Gate
	if !g.mayWrite("") || !(opening{}).Open() || !(opening{}).Enter() {
		t.Error("without a gate, nothing may begin")
	}
}

// Handlers post events, or nothing, or what they log.
func TestPosters(t *testing.T) {
	poster := posting.New(nil, posting.Options{})
	if _, silent := (Options{NoPosting: true}).posterFor(poster).(posting.Silent); !silent {
		t.Error("events are posted that nobody wants")
	}
	lines := Options{}
	lines.Posting.Loggers = true
	if _, both := lines.posterFor(poster).(posting.LinePoster); !both {
		t.Error("what is logged is not posted")
	}
	if lines.Posting.Loggers = false; lines.posterFor(poster) != handlers.Poster(poster) {
		t.Error("what is logged is posted, though nobody wants it")
	}
}

// A replica fills only those indices that there are.
func TestIndexedSelectors(t *testing.T) {
	indexed, other := discovery.Selector{Plural: "a"}, discovery.Selector{Plural: "b"}
	o := Options{Registrations: []Registration{
		{Selector: indexed, Handler: &handlers.Handler{Family: handlers.Indexing, Index: &handlers.Index{}}},
		{Selector: other, Handler: &handlers.Handler{}},
	}}
	if !o.indexes(indexed) || o.indexes(other) {
		t.Errorf("indexed: %v, the other one: %v", o.indexes(indexed), o.indexes(other))
	}
}
