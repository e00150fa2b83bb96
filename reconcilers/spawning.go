package reconcilers

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// These end the service of a kind: it is served another way from now on, or is no more.
var (
	errMoved    = errors.New("the kind is not served this way any more")
	errVanished = errors.New("the kind is not served any more")
)

var _ background.Service = (*kind)(nil)

// spawning are the handlers that run in the background.
func spawning(own []*handlers.Handler) (all []*handlers.Handler) {
	for _, h := range own {
		if h.Family == handlers.Spawning {
			all = append(all, h)
		}
	}
	return all
}

// crew is that of a scope. It outlives the service of the kind, as the memory does.
func (e *engine) crew(s scope) *background.Crew {
	held, _ := e.crews.LoadOrStore(s, &background.Crew{Ticks: &e.ticks, Daemons: &e.daemons})
	crew, _ := held.(*background.Crew)
	return crew
}

// staff lets the background handlers run until the context ends, or what it gives is called, which waits for them.
func (k *kind) staff(ctx context.Context) (end func()) {
	k.crew.Begin(background.Settings{
		Handlers: adapters.NewAll(spawning(k.own), k.metrics), Writer: k.writerOf(k.Resource),
		WriteTimeout:      k.writeTimeout(),
		StatusSubresource: k.StatusSubresource, Events: k.poster, Backoff: k.Backoff, Polling: k.CancelPolling,
		InstantExit:     k.InstantExit,
		LeaveFinalizers: k.LeaveFinalizers, Forgotten: k.Forget, Log: k.log,
	}, k)
	reason := func() background.Reason {
		if cause := context.Cause(ctx); cause == nil || errors.Is(cause, errMoved) || errors.Is(
			cause, errVanished,
		) || errors.Is(cause, execution.ErrPaused) {
			return background.Pausing
		}
		return background.Exiting
	}
	// At once, while handlers of changes are still waited for.
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		k.crew.Stop(reason())
	})
	return func() {
		if !stop() {
			<-stopped // it must not come after the next beginning
		}
		k.crew.End(reason())
	}
}

// fire begins a tick of a timer, if there is one.
func (k *kind) fire(request source.Request) {
	if cached := k.cached(request); cached != nil {
		k.crew.Fire(cached.GetUID(), request.Handler)
	}
}

// forget is for an object that is gone.
func (k *kind) forget(uid types.UID) { k.crew.Forget(uid) }

// farewell is when all have been told of objects that are gone.
func (k *kind) farewell(request source.Request) {
	if gone := k.objects.farewell(request.NamespacedName); k.Forget != nil {
		for _, uid := range gone {
			k.Forget(uid)
		}
	}
}

// vanish forgets all objects of a kind that is no more: nobody may tell of their end.
func (k *kind) vanish() {
	for _, uid := range k.objects.missed(nil) {
		if k.Forget != nil {
			k.Forget(uid)
		}
	}
	if k.objects.indexer != nil {
		k.objects.indexer.Begin(adapters.NewAll(indexing(k.own), nil), k.Backoff, k.log)
		k.objects.indexer.Listed()
	}
}

// Latest is what the cache has.
func (k *kind) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	if cached := k.cached(source.Request{NamespacedName: key}); cached != nil && cached.GetUID() == uid {
		return cached.Object
	}
	return nil
}

// Enqueue has a look taken at the object, or a tick.
func (k *kind) Enqueue(key types.NamespacedName, handler string, after time.Duration) {
	waiting := k.queue.Load()
	if waiting == nil {
		return
	}
	request, priority := source.Request{NamespacedName: key, Handler: handler}, source.PriorityTimer
	if handler == "" {
		priority = k.priority(request, source.PriorityChange)
	}
	waiting.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, request)
}
