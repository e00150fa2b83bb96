package explorer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var errNotYet = errors.New("not yet")

// effectHandler returns a slow handler that fails a number of times for each change, and then records the state of the
// object outside of the cluster. Its result and a change of the status record the state on the object.
func (l *life) effectHandler(takes time.Duration, failures int) kopf.ChangeFunc[*unstructured.Unstructured] {
	return func(ctx context.Context, c *Change) error {
		if err := pause(ctx, takes); err != nil {
			return err
		}
		if c.Retry < failures {
			return kopf.Temporary(errNotYet, 5*time.Second)
		}
		l.recordEffect(c)
		c.SetResult(map[string]any{"told": stateOf(c.Object)})
		return nil
	}
}

// refusedStatusHandler is carries with a status that the API server refuses, so often for the change.
func (l *life) refusedStatusHandler(takes time.Duration, refusals int) kopf.ChangeFunc[*unstructured.Unstructured] {
	carry := l.effectHandler(takes, 0)
	return func(ctx context.Context, c *Change) error {
		if c.Retry < refusals {
			c.Patch(func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, c.ID, "status", "spoiled")
			})
		}
		return carry(ctx, c)
	}
}

// refuseSpoiledStatus refuses such a status.
func refuseSpoiledStatus(object map[string]any) error {
	if id, spoiled, _ := unstructured.NestedString(object, "status", "spoiled"); spoiled {
		return memapi.NewRefusal(http.StatusUnprocessableEntity, "status.spoiled of "+id)
	}
	return nil
}

// subHandlerParent is a parent that lets its sub-handlers do the work.
func (l *life) subHandlerParent(takes time.Duration, subs ...string) kopf.ChangeFunc[*unstructured.Unstructured] {
	return func(_ context.Context, c *Change) error {
		for i, id := range subs {
			c.Sub(id, l.effectHandler(takes, i%2))
		}
		return nil
	}
}

// nestedParent is a parent of parents, which run their parts on the spot.
func (l *life) nestedParent(takes time.Duration, subs ...string) kopf.ChangeFunc[*unstructured.Unstructured] {
	return func(ctx context.Context, c *Change) error {
		for i, id := range subs {
			c.Sub(id, func(ctx context.Context, c *Change) error {
				c.Sub("part", l.effectHandler(takes, i%2))
				return c.RunSubs(ctx)
			})
		}
		return c.RunSubs(ctx)
	}
}

// chainedParent is a parent whose parts come one after the other, though they are declared the other way round. One
// that is called before its turn fails and has no outside effect.
func (l *life) chainedParent(takes time.Duration, subs ...string) kopf.ChangeFunc[*unstructured.Unstructured] {
	return func(_ context.Context, parent *Change) error {
		for i := len(subs) - 1; i >= 0; i-- {
			before, carry := subs[:i], l.effectHandler(takes, i%2)
			parent.Sub(subs[i], func(ctx context.Context, c *Change) error {
				for _, id := range before {
					if outcome := parent.Outcome(id); outcome.State != kopf.SubSucceeded {
						return kopf.Permanent(fmt.Errorf("%s is %s", id, outcome.State))
					}
				}
				return carry(ctx, c)
			}, kopf.After(before...))
		}
		return nil
	}
}

// backgroundTask is a function in the background that makes something outside of the cluster with each call. A daemon
// goes on until it is stopped.
func (l *life) backgroundTask(id string, daemon bool) kopf.TaskFunc[*unstructured.Unstructured] {
	return func(ctx context.Context, r *kopf.Task[*unstructured.Unstructured]) error {
		uid := string(r.Latest().GetUID())
		l.process.Do("make of "+id, func() { l.ledger.recordBackgroundEffect(uid) })
		if daemon {
			<-ctx.Done()
		}
		return nil
	}
}

// recordEffect records the effect outside of the cluster.
func (l *life) recordEffect(c *Change) {
	l.process.Do("record effect of "+c.ID, func() {
		l.ledger.recordEffect(c.ID, string(c.Object.GetUID()),
			stateOf(c.Object))
	})
}

func stateOf(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "spec", "value")
	return value + "/" + o.GetLabels()["foreign"]
}

func pause(ctx context.Context, takes time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(takes):
		return nil
	}
}
