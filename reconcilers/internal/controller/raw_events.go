package controller

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// eventHandling delivers the raw events of one kind. It queues them until a pass over their object calls the handlers.
type eventHandling struct {
	handling events.EventHandling
	// queue holds a limited number of events for each object.
	queue        events.Queue
	log          logr.Logger
	countDropped func() // counts an event that was dropped
}

// newEventHandling returns nil if there are no event handlers.
func newEventHandling(deps *Dependencies, of kind.HandledKind, watching []*adapters.HandlerChain) *eventHandling {
	if len(watching) == 0 {
		return nil
	}
	return &eventHandling{
		handling:     events.EventHandling{HandledKind: of, Handlers: watching, Loops: &events.Loops{}},
		log:          logging.OfKind(deps.Log, of.Resource.GroupVersionKind),
		countDropped: deps.Metrics.DroppedCounter(of.Resource.GroupKind().String()),
	}
}

// queueEvent queues an event for the next pass over its object. It runs on the informer's goroutine. If too many events
// wait, the oldest one of the object is dropped.
func (e *eventHandling) queueEvent(eventType string, obj source.Object) {
	if !e.queue.Add(events.RawEvent{Type: eventType, Object: obj}) {
		return
	}
	e.countDropped()
	log := logging.OfObject(e.log, obj.ObjectKey(), obj.GetUID())
	log.V(1).Info("Dropped the oldest event of an object: too many events wait for its handlers",
		"limit", events.MaxPendingEvents)
}

// notingWriter records the writes of change handlers, so that loop detection recognizes their events as own writes.
type notingWriter struct {
	kind.Writer
	loops *events.Loops
}

// ApplyRetrying writes the patch, and records the resource versions that it created. Versions of a failed write count,
// too: a part of it may have been written.
func (w notingWriter) ApplyRetrying(
	ctx context.Context, target patching.Target, patch patching.Patch,
) (patching.WriteResult, error) {
	result, err := w.Writer.ApplyRetrying(ctx, target, patch)
	object := unstructured.Unstructured{Object: target.Body}
	w.loops.NoteVersions(client.ObjectKeyFromObject(&object), result.Versions)
	return result, err
}
