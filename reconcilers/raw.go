package reconcilers

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// rawEvents are the events of one kind that wait for handlers of events. Nil is for kinds that have no such handlers.
type rawEvents struct {
	events.Handling
	queue   events.Queue
	log     logr.Logger
	dropped func() // counts an event that nobody will see
}

// rawEvents makes the queue and the handling of events, if any of the handlers is for them.
func (e *engine) rawEvents(r Resource, own []*handlers.Handler, place execution.Place) *rawEvents {
	var watching []*handlers.Handler
	for _, h := range own {
		if h.Family == handlers.Watching {
			watching = append(watching, h)
		}
	}
	if len(watching) == 0 {
		return nil
	}
	return &rawEvents{
		Handling: events.Handling{
			Handlers: adapters.NewAll(watching, e.metrics), Place: place,
			Writer: e.writerOf(r), StatusSubresource: r.StatusSubresource, Events: e.poster,
			WriteTimeout: e.writeTimeout(),
		},
		log: e.log.WithValues("kind", r.Kind), dropped: e.metrics.Dropped(r.Kind),
	}
}

// add runs on the informer's goroutine.
func (r *rawEvents) add(kind string, obj source.Object) {
	if r == nil || !r.queue.Add(events.Event{Type: kind, Object: obj}) {
		return
	}
	r.dropped()
	r.log.V(1).Info("Too many events of an object wait for their handlers; the oldest one was dropped",
		"namespace", obj.GetNamespace(), "name", obj.GetName(), "limit", events.Limit)
}

// deliver shows the handlers of events what has happened since, before anything else is done for the object.
func (k *kind) deliver(ctx context.Context, request source.Request, cached *unstructured.Unstructured) {
	if k.objects.raw == nil {
		return
	}
	raw := k.objects.raw
	patch := raw.Deliver(ctx, raw.queue.Take(request.NamespacedName))
	if cached == nil || patch.Empty() {
		return
	}
	o := k.objects.take(cached.GetUID())
	if o.past(cached) || !k.still(request, cached.GetUID()) {
		return
	}
	result := raw.Write(ctx, o.newest(cached), patch)
	if result.Body != nil && !result.Released {
		o.written = result.Body
	}
	o.released = o.released || result.Released
	k.objects.put(cached.GetUID(), o)
}
