package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// labelled returns whether the newest state of the object has a label.
func labelled(c *handlers.Invocation) bool {
	known := unstructured.Unstructured{Object: c.Cause.Body()}
	latest := c.LatestState.Latest(types.NamespacedName{Namespace: "default", Name: known.GetName()}, known.GetUID())
	return (&unstructured.Unstructured{Object: latest}).GetLabels()["l"] != ""
}

// skipPause returns a function that waits for the label, and records how and when the wait ended.
func skipPause(j *journal) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		for !labelled(c) && ctx.Err() == nil {
			time.Sleep(time.Second)
		}
		if ctx.Err() != nil {
			j.add(c.Handler.ID + " ended: " + context.Cause(ctx).Error())
			return context.Cause(ctx)
		}
		j.add(c.Handler.ID + " saw the label of one of " + c.Resource.Plural)
		return nil
	}
}

// TestHandlersSeeTheLatestState shows that a running handler sees changes of its object, through the cache of the kind.
func TestHandlersSeeTheLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newDirectClient(t, server)
		p.create("ConfigMap", "c")
		j := &journal{startTime: time.Now()}
		stop := operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", &handlers.Handler{ID: "change", Reason: cause.Create, Call: skipPause(j)}),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "event", Family: handlers.Watching, Call: func(
				ctx context.Context, c *handlers.Invocation,
			) error {
				if c.Cause.EventType == "" {
					return skipPause(j)(ctx, c)
				}
				return nil
			}}),
		)
		defer stop()
		time.Sleep(9500 * time.Millisecond)
		p.label("ConfigMap", "c", "x")
		time.Sleep(time.Minute)
		requireLines(t, "the event handler and then the change handler must see the label", j,
			"10s event saw the label of one of configmaps", "10s change saw the label of one of configmaps")
	})
}

// TestHandlersSeeThatTheObjectIsGone shows that the context of a handler ends when it reads the state of a gone object.
func TestHandlersSeeThatTheObjectIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newDirectClient(t, server)
		p.create("ConfigMap", "c")
		j := &journal{startTime: time.Now()}
		stop := operateAll(t, server, reconcilers.Options{}, registrationFor(t, "configmaps",
			&handlers.Handler{ID: "change", Reason: cause.Create, Call: skipPause(j)}))
		defer stop()
		time.Sleep(9500 * time.Millisecond)
		p.remove("ConfigMap", "c")
		p.create("ConfigMap", "c") // a different object
		time.Sleep(time.Second)
		requireLines(t, "the handler of the gone object must end", j, "10s change ended: "+execution.ErrDeleted.Error())
		p.label("ConfigMap", "c", "x")
		time.Sleep(time.Minute)
		requireLines(t, "the new object must be handled", j, "10s change ended: "+execution.ErrDeleted.Error(),
			"11s change saw the label of one of configmaps")
	})
}

func requireLines(t *testing.T, reason string, j *journal, lines ...string) {
	t.Helper()
	if want, got := strings.Join(lines, "; "), j.String(); got != want {
		t.Errorf("%s: want %q, got %q", reason, want, got)
	}
}
