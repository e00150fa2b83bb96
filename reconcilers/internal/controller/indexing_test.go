package controller_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
)

// indexFixture is a site with an index of the names of objects, each with its label.
type indexFixture struct {
	*kindFixture
	index        *indexes.ObjectIndex
	readiness    *indexes.Readiness
	listWatchErr error // the error of lists and watches
	failsOnce    bool  // the error applies to the next of them only
}

func newIndexFixture(t *testing.T) *indexFixture {
	c := &indexFixture{kindFixture: newKindFixture(t), index: indexes.New(), readiness: indexes.NewReadiness()}
	c.turn.Readiness = c.readiness
	c.connection.Before = func(_ context.Context, r memapi.Request) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.Verb != "list" && r.Verb != "watch" {
			return nil
		}
		err := c.listWatchErr
		if c.failsOnce {
			c.listWatchErr = nil
		}
		return err
	}
	c.handlers = []*adapters.HandlerChain{adapters.New(&handlers.Handler{
		ID: "i", Family: handlers.Indexing, Index: &handlers.IndexWork{
			Store: c.index, Call: func(_ context.Context, call *handlers.Invocation) (map[any]any, bool, error) {
				c.recordCall(name(call) + " " + call.Cause.EventType)
				return map[any]any{name(call): labelOf(call.Cause.Body())}, false, nil
			},
		},
	}, nil)}
	c.readiness.UpdateKinds([]string{"configmaps"}, nil)
	return c
}

// startIndexing fills the index as a replica that does not lead.
func (c *indexFixture) startIndexing() (stop func(error)) {
	return c.startRun(func(ctx context.Context) {
		controller.RunIndexing(ctx, c.deps, c.readiness, resource, c.liveNamespaces, c.handlers)
	})
}

func (c *indexFixture) setListWatchErr(err error) { c.withLock(func() { c.listWatchErr = err }) }

// requireIndex compares the entries of the index, and whether handlers may rely on it.
func (c *indexFixture) requireIndex(when string, ready bool, want ...string) {
	c.t.Helper()
	synctest.Wait()
	var got []string
	for _, key := range c.index.Keys() {
		for _, value := range c.index.Get(key) {
			got = append(got, strings.TrimSuffix(key.(string)+"="+value.(string), "="))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || ready != (len(c.readiness.WaitingFor()) == 0) {
		c.t.Errorf("%s: got %q, want %q; not ready: %q", when, got, want, c.readiness.WaitingFor())
	}
}

// TestIndex shows that the index follows the objects through interruptions, whether controllers or a replica fill it.
func TestIndex(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(c *indexFixture, stop func(error))
	}{
		"Events": {
			"the index follows creations, edits and deletions", func(c *indexFixture, _ func(error)) {
				c.create("a", "y")
				c.edit("a", "x", `{"metadata":{"labels":{"l":"2"}}}`)
				c.requireIndex("after a creation and an edit", true, "x=2", "y")
				c.remove("a", "x")
				c.requireIndex("after a deletion", true, "y")
				c.requireDeletions("the memo of the deleted object", 1)
				c.requireCalls("index functions get the type of the event", "x ", "y ADDED", "x MODIFIED")
			},
		},
		"Replaced": {
			"an object that replaced another one of its name is indexed as new", func(c *indexFixture, _ func(error)) {
				c.setListWatchErr(unavailable())
				time.Sleep(20 * time.Minute) // longer than any watch
				c.remove("a", "x")
				c.create("a", "x")
				c.server.Compact()
				c.setListWatchErr(nil)
				time.Sleep(2 * time.Minute)
				c.requireIndex("after a list with the new object", true, "x")
				c.requireDeletions("the first object", 1)
			},
		},
		"GoneUnseen": {
			"an object that was deleted without a watch is removed by the next list",
			func(c *indexFixture, _ func(error)) {
				c.setListWatchErr(unavailable())
				time.Sleep(20 * time.Minute)
				c.remove("a", "x")
				c.server.Compact()
				c.setListWatchErr(nil)
				time.Sleep(2 * time.Minute)
				c.requireIndex("after the next list", true)
				c.requireDeletions("the deleted object", 1)
			},
		},
		"Relisted": {
			"unchanged objects are not indexed again by another list", func(c *indexFixture, _ func(error)) {
				c.takeAll(&c.calls)
				c.withLock(func() { c.listWatchErr, c.failsOnce = apierrors.NewResourceExpired("too old"), true })
				time.Sleep(20 * time.Minute) // longer than any watch
				c.requireCalls("after another list")
				if c.listWatchErr != nil {
					c.t.Error("no list or watch was requested")
				}
			},
		},
		"KindGone": {
			"a kind that is not served any more has an empty index", func(c *indexFixture, stop func(error)) {
				stop(controller.ErrRemoved)
				c.requireIndex("after the removal of the kind", true)
				c.requireDeletions("the object of the kind", 1)
			},
		},
		"Paused": {
			"a pause keeps the index", func(c *indexFixture, stop func(error)) {
				stop(execution.ErrPaused)
				c.requireIndex("after the pause began", true, "x")
				c.requireDeletions("no object is forgotten", 0)
			},
		},
		"TakenOver": {
			"controllers fill the index by their own watches; after them the replica continues",
			func(c *indexFixture, _ func(error)) {
				stop := c.run()
				c.connection.DrainRequests()
				c.create("a", "y")
				c.requireIndex("filled by the controllers", true, "x", "y")
				stop(execution.ErrPaused)
				c.create("a", "z")
				c.requireIndex("filled by the replica again", true, "x", "y", "z")
			},
		},
		"Namespaces": {
			"objects of namespaces that are not served are not indexed", func(c *indexFixture, _ func(error)) {
				c.create("b", "z")
				c.liveNamespaces.Replace([]string{"b"})
				c.waitUntilSettled()
				c.create("a", "y")
				c.create("b", "zz")
				if got := c.index.Get("y"); len(got) > 0 || len(c.index.Get("zz")) != 1 {
					c.t.Errorf("got %q for the namespace not served, %q for the served one", got, c.index.Get("zz"))
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				c := newIndexFixture(t)
				c.create("a", "x")
				stop := c.startIndexing()
				c.requireIndex("after the start", true, "x")
				tc.play(c, stop)
			})
		})
	}
}

// TestIndexThatCannotBeFilled shows which errors of a first list block the handlers that need the index.
func TestIndexThatCannotBeFilled(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		fails  error
		ready  bool
	}{
		"Forbidden": {
			"a forbidden list does not block handlers, as only changed rights would help",
			apierrors.NewForbidden(schema.GroupResource{}, "", nil), true,
		},
		"NotFound": {"an unserved kind does not block handlers, as only its CRD would help",
			apierrors.NewNotFound(schema.GroupResource{}, ""), true},
		"NotListable": {"a kind that cannot be listed does not block handlers",
			apierrors.NewMethodNotSupported(schema.GroupResource{}, "list"), true},
		"OutOfOrder": {"a temporary error blocks handlers until the index is filled", unavailable(), false},
	} {
		for runner, run := range map[string]func(c *indexFixture){
			"Controller": func(c *indexFixture) { c.run() }, "Replica": func(c *indexFixture) { c.startIndexing() },
		} {
			t.Run(name+"/"+runner, func(t *testing.T) {
				defer explain(t, c.reason)
				synctest.Test(t, func(t *testing.T) {
					own := newIndexFixture(t)
					own.create("a", "x")
					own.setListWatchErr(c.fails)
					run(own)
					time.Sleep(10 * time.Second)
					own.requireIndex("while lists are refused", c.ready)
					own.setListWatchErr(nil)
					time.Sleep(2 * time.Minute)
					own.requireIndex("when lists succeed again", true, "x")
				})
			})
		}
	}
}

func unavailable() error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "out of order"},
	}
}
