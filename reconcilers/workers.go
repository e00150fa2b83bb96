package reconcilers

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/queue"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// workers make the passes of one resource, in all its namespaces. There are only as many goroutines as there is work.
type workers struct {
	places     *queue.Places
	occupation *adapters.Occupation
	chain      adapters.Reconciler // of the handlers that hold places
	log        logr.Logger
}

func (e *engine) newWorkers(r Resource, own []*handlers.Handler) *workers {
	w := &workers{
		occupation: &adapters.Occupation{
			Handlers: own, Gauge: e.metrics.Occupied(r.Kind),
		}, log: e.log.WithValues("kind", r.Kind),
	}
	w.chain = w.occupation.Adapter(e.chain)
	w.places = queue.NewPlaces(e.workers(), queue.Observer{Waiting: e.metrics.Waiting(r.Kind), Stalled: w.stalled})
	return w
}

// stalled tells who is in the way of whom, and what to do about that.
func (w *workers) stalled(s queue.Stall) {
	what := "objects"
	if s.Deletions {
		what = "objects that are being deleted"
	}
	if s.Waiting == 0 {
		w.log.Info("No object waits for a worker any more", "waited", what)
		return
	}
	var occupied []string
	for _, h := range w.occupation.Holders() {
		occupied = append(
			occupied, fmt.Sprintf("%s: %d objects, for up to %s", h.Handler, h.Objects, h.Longest.Round(time.Second)),
		)
	}
	w.log.Info("Handlers occupy all workers, and others wait for them. A handler without a timeout may do so for "+
		"ever: limit it with facade.Timeout, "+
		"see that it ends with its context, or allow more with facade.Workers; this is said once until nobody waits "+
		"any more",
		"waiting", s.Waiting, "what", what, "since", time.Since(s.Since).Round(time.Second).String(),
		"occupied", occupied)
}

// dispatcher is what the controller calls: it hands each request over to a goroutine. So what the controller waits for
// is the next turn, with its place, and nothing else.
type dispatcher struct{ kind *kind }

var _ reconcile.TypedReconciler[source.Request] = dispatcher{}

// Reconcile begins to serve the request.
func (d dispatcher) Reconcile(ctx context.Context, request source.Request) (reconcile.Result, error) {
	from := d.kind.queue.Load()
	if !d.kind.ready.wait(ctx) {
		from.Release(request)
		return reconcile.Result{}, nil
	}
	d.kind.passes.Go(func() {
		defer from.Release(request)
		d.kind.attendTo(ctx, from, request)
	})
	return reconcile.Result{}, nil
}

// attendTo makes a pass, and has the queue do what it asks for.
func (k *kind) attendTo(ctx context.Context, from *queue.Queue, request source.Request) {
	result, err := k.contained(ctx, request)
	switch {
	case err != nil:
		logf.FromContext(ctx).Error(
			err, "The object cannot be handled now; it will be tried again", "namespace", request.Namespace, "name",
			request.Name,
		)
		from.AddRateLimited(request)
	case result.RequeueAfter > 0:
		from.Forget(request)
		from.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, request)
	default:
		from.Forget(request)
	}
}

// contained is a pass whose panics are errors: nobody else would keep them from ending the process.
func (k *kind) contained(ctx context.Context, request source.Request) (result reconcile.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return k.Reconcile(ctx, request)
}
