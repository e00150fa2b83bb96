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
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
)

// catalogue is a site with an index of names, each with its label.
type catalogue struct {
	*site
	index     *indexes.Index
	readiness *indexes.Readiness
	fails     error // the answer to lists and watches
	once      bool  // to the next of them
}

func newCatalogue(t *testing.T) *catalogue {
	c := &catalogue{site: newSite(t), index: indexes.New(), readiness: indexes.NewReadiness()}
	c.turn.Readiness = c.readiness
	c.connection.Before = func(_ context.Context, r memapi.Request) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.Verb != "list" && r.Verb != "watch" {
			return nil
		}
		err := c.fails
		if c.once {
			c.fails = nil
		}
		return err
	}
	c.handlers = []*adapters.Handler{adapters.New(&handlers.Handler{
		ID: "i", Family: handlers.Indexing, Index: &handlers.Index{
			Into: c.index, Call: func(_ context.Context, call *handlers.Invocation) (map[any]any, bool, error) {
				c.note(name(call) + " " + call.Cause.Type)
				return map[any]any{name(call): labelOf(call.Cause.Body())}, false, nil
			},
		},
	}, nil)}
	c.readiness.Begin([]string{"configmaps"}, nil)
	return c
}

// fill keeps the index filled as another replica does.
func (c *catalogue) fill() (stop func(error)) {
	return c.begin(func(ctx context.Context) {
		controller.Index(ctx, c.deps, c.readiness, resource, c.live, c.handlers)
	})
}

func (c *catalogue) fail(err error) { c.change(func() { c.fails = err }) }

// wantIndex compares what is in the index, and whether handlers may rely on it.
func (c *catalogue) wantIndex(when string, ready bool, want ...string) {
	c.t.Helper()
	synctest.Wait()
	var got []string
	for _, key := range c.index.Keys() {
		for _, value := range c.index.Get(key) {
			got = append(got, strings.TrimSuffix(key.(string)+"="+value.(string), "="))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || ready != (len(c.readiness.Waiting()) == 0) {
		c.t.Errorf("%s: %q, want %q; waits for %q", when, got, want, c.readiness.Waiting())
	}
}

func TestIndex(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(c *catalogue, stop func(error))
	}{
		"Events": {
			"the index follows the objects", func(c *catalogue, _ func(error)) {
				c.create("a", "y")
				c.edit("a", "x", `{"metadata":{"labels":{"l":"2"}}}`)
				c.wantIndex("one more, one otherwise", true, "x=2", "y")
				c.remove("a", "x")
				c.wantIndex("one less", true, "y")
				c.wantGone("its memos can go", 1)
				c.want("the functions know what happened", "x ", "y ADDED", "x MODIFIED")
			},
		},
		"Replaced": {
			"another object of the name is another one", func(c *catalogue, _ func(error)) {
				c.fail(unavailable())
				time.Sleep(20 * time.Minute) // any watch has ended
				c.remove("a", "x")
				c.create("a", "x")
				c.server.Compact()
				c.fail(nil)
				time.Sleep(2 * time.Minute)
				c.wantIndex("a list shows only one of them", true, "x")
				c.wantGone("the first one", 1)
			},
		},
		"GoneUnseen": {
			"a list tells what no watch has told", func(c *catalogue, _ func(error)) {
				c.fail(unavailable())
				time.Sleep(20 * time.Minute)
				c.remove("a", "x")
				c.server.Compact()
				c.fail(nil)
				time.Sleep(2 * time.Minute)
				c.wantIndex("it works again", true)
				c.wantGone("it is", 1)
			},
		},
		"Relisted": {
			"what has not changed is not indexed again", func(c *catalogue, _ func(error)) {
				c.take(&c.calls)
				c.change(func() { c.fails, c.once = apierrors.NewResourceExpired("too old"), true })
				time.Sleep(20 * time.Minute) // any watch has ended
				c.want("after another list")
				if c.fails != nil {
					c.t.Error("nobody has listed or watched")
				}
			},
		},
		"KindGone": {
			"a kind that is not served any more has no objects", func(c *catalogue, stop func(error)) {
				stop(controller.ErrRemoved)
				c.wantIndex("it is empty", true)
				c.wantGone("its object is", 1)
			},
		},
		"Paused": {
			"what is known is not forgotten", func(c *catalogue, stop func(error)) {
				stop(execution.ErrPaused)
				c.wantIndex("as it was", true, "x")
				c.wantGone("nothing is", 0)
			},
		},
		"TakenOver": {
			"controllers fill the index by what they watch themselves; then this is theirs alone",
			func(c *catalogue, _ func(error)) {
				stop := c.run()
				c.connection.Drain()
				c.create("a", "y")
				c.wantIndex("by the controllers", true, "x", "y")
				stop(execution.ErrPaused)
				c.create("a", "z")
				c.wantIndex("by the replica again", true, "x", "y", "z")
			},
		},
		"Namespaces": {
			"what is not served is not in it", func(c *catalogue, _ func(error)) {
				c.create("b", "z")
				c.live.Set([]string{"b"})
				c.settle()
				c.create("a", "y")
				c.create("b", "zz")
				if got := c.index.Get("y"); len(got) > 0 || len(c.index.Get("zz")) != 1 {
					c.t.Errorf("%q, %q", got, c.index.Get("zz"))
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				c := newCatalogue(t)
				c.create("a", "x")
				stop := c.fill()
				c.wantIndex("at first", true, "x")
				tc.play(c, stop)
			})
		})
	}
}

func TestIndexThatCannotBeFilled(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		fails  error
		ready  bool
	}{
		"Forbidden": {
			"only a change of rights would help", apierrors.NewForbidden(schema.GroupResource{}, "", nil), true,
		},
		"NotFound":    {"only its CRD would", apierrors.NewNotFound(schema.GroupResource{}, ""), true},
		"NotListable": {"nothing would", apierrors.NewMethodNotSupported(schema.GroupResource{}, "list"), true},
		"OutOfOrder":  {"it will pass", unavailable(), false},
	} {
		for runner, run := range map[string]func(c *catalogue){
			"Controller": func(c *catalogue) { c.run() }, "Replica": func(c *catalogue) { c.fill() },
		} {
			t.Run(name+"/"+runner, func(t *testing.T) {
				defer explain(t, c.reason)
				synctest.Test(t, func(t *testing.T) {
					own := newCatalogue(t)
					own.create("a", "x")
					own.fail(c.fails)
					run(own)
					time.Sleep(10 * time.Second)
					own.wantIndex("it is refused", c.ready)
					own.fail(nil)
					time.Sleep(2 * time.Minute)
					own.wantIndex("it is not any more", true, "x")
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
