package controller

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// eventHandling is that of the raw events of one kind, with those that wait for it.
type eventHandling struct {
	handling events.Handling
	waiting  events.Queue
	log      logr.Logger
	dropped  func() // counts an event that nobody will see
}

// newEventHandling is nil if there are no handlers of events.
func newEventHandling(
	deps *Dependencies, r discovery.Resource, watching []*adapters.Handler, place execution.Place,
) *eventHandling {
	if len(watching) == 0 {
		return nil
	}
	return &eventHandling{
		handling: events.Handling{
			Handlers: watching, Place: place, Events: deps.Events, Writer: deps.writerFor(r),
			StatusSubresource: r.HasStatus(), WriteTimeout: deps.Settings.WriteTimeout,
		},
		log: deps.Log.WithValues("kind", r.Kind), dropped: deps.Metrics.Dropped(r.Kind),
	}
}

// add runs on the informer's goroutine.
func (e *eventHandling) add(kind string, obj source.Object) {
	if e == nil || !e.waiting.Add(events.Event{Type: kind, Object: obj}) {
		return
	}
	e.dropped()
	e.log.V(1).Info("Dropped the oldest event of an object: too many events wait for its handlers",
		"namespace", obj.GetNamespace(), "name", obj.GetName(), "limit", events.Limit)
}

// deliverEvents shows the handlers of events what has happened since, before anything else is done for the object.
func (c *Controller) deliverEvents(ctx context.Context, key types.NamespacedName, cached *unstructured.Unstructured) {
	if c.events == nil {
		return
	}
	handling := &c.events.handling
	patch := handling.Deliver(ctx, c.events.waiting.Take(key))
	if cached == nil || patch.Empty() {
		return
	}
	uid := cached.GetUID()
	o := c.objects.Take(uid)
	if o.Past(cached) || c.goneMeanwhile(key, uid) {
		return
	}
	result := handling.Write(ctx, o.Newest(cached), patch)
	o.Wrote(result.Body, result.Released)
	c.objects.Put(uid, o)
}
