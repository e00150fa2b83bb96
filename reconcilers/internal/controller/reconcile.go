package controller

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

var _ reconcile.TypedReconciler[source.Request] = (*Controller)(nil)

// Reconcile waits until handlers may run, then hands the request over to a goroutine. It never waits for the pass, so
// the only worker of controller-runtime waits for the next request with a free slot. The goroutine releases the slot.
func (c *Controller) Reconcile(ctx context.Context, request source.Request) (reconcile.Result, error) {
	// A later run replaces the queue, but the request must be released where it came from.
	from := c.queue.Load()
	if !c.turn.Readiness.Wait(ctx) || !c.enterGate() {
		// The context has ended or the gate is closed. The request is dropped: the next run lists all objects again.
		from.Release(request)
		return reconcile.Result{}, nil
	}
	counted := c.mergeUnwrittenCount(request)
	// The context of the passes outlives ctx, so that handlers can finish when the operator exits.
	passing := logf.IntoContext(c.passContext, logf.FromContext(ctx))
	c.passes.Go(func() {
		defer from.Release(request)
		// An object with unsaved results stays counted in the gate until they are stored.
		if left := c.serveRequest(passing, from, request, counted); !left || !c.keepCounted(passing, request) {
			c.leaveGate()
		}
	})
	return reconcile.Result{}, nil
}

// enterGate counts the beginning of a pass in the gate. It returns false if the gate is closed; the objects are listed
// again when it opens.
func (c *Controller) enterGate() bool { return c.turn.Gate == nil || c.turn.Gate.Enter() }

// leaveGate ends the count of a pass, or of an object with unsaved results.
func (c *Controller) leaveGate() {
	if c.turn.Gate != nil {
		c.turn.Gate.Leave()
	}
}

// serveRequest runs the request, and adds the next request for the object to the queue. It returns true if results of
// handlers are not stored yet; before is true if that was so before the request. An error, including a recovered panic,
// is retried with the backoff of the queue.
func (c *Controller) serveRequest(
	ctx context.Context, from *source.PriorityQueue, request source.Request, before bool,
) (left bool) {
	result, left, err := c.runRequestSafely(ctx, request, before)
	switch {
	case err != nil:
		log := logging.OfObject(logf.FromContext(ctx), request.NamespacedName, c.cachedUID(request.NamespacedName))
		log.Error(err, "Cannot handle the object now; retrying", panics.StackFields(err)...)
		from.AddRateLimited(request)
	case result.RequeueAfter > 0:
		// A pass without an error resets the backoff, even if it requests another pass.
		from.Forget(request)
		from.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, request)
	default:
		from.Forget(request)
	}
	return left
}

// runRequestSafely runs a pass or a timer tick. It turns a panic into an error, as it would otherwise end the process.
// A panic does not store results: those that were left before the request are still left.
func (c *Controller) runRequestSafely(
	ctx context.Context, request source.Request, before bool,
) (result reconcile.Result, left bool, err error) {
	left = before
	err = panics.Contain(func() error {
		if request.Handler != "" {
			c.fireTimer(request)
		} else {
			result = c.runPass(ctx, request.NamespacedName, &left)
		}
		return nil
	})
	return result, left, err
}

// runPass runs one pass over one object: it delivers raw events, then handles changes, which also starts and stops
// background handlers. It sets left to whether results of handlers are not stored yet. Errors do not leave it: they are
// logged once, and delay this object only.
//
// The cache is read again after the memory was acquired, because it may have advanced since. If the newest state is our
// own write and needs no work, the pass ends after the raw events, unless the pass was requested without an event.
func (c *Controller) runPass(ctx context.Context, key types.NamespacedName, left *bool) (result reconcile.Result) {
	// Dependents learn about a deletion only after the event handlers of this pass have received it. A later deletion
	// is for the next pass.
	deleted := c.objects.CountDeletions(key)
	defer func() { c.notifyDeleted(key, deleted) }()
	woken := c.objects.TakePassRequest(key)
	ctx = logf.IntoContext(ctx, c.log)
	cached := c.cachedObject(key)
	// Raw events come first: they must be delivered even if the object needs no other work.
	if wait := c.deliverEvents(ctx, key, cached); wait > 0 {
		deleted = 0 // the handlers get their events later
		defer func() { result = withEarlierRequeue(result, wait) }()
	}
	// An object that disappeared is not in the cache, so its handlers must run before the next check.
	if c.disappearedObjects != nil {
		c.callForDisappeared(ctx, key)
	}
	// Nothing is left to do for a deleted object, or for a kind that is only watched for its owners.
	if cached == nil || c.isWatchOnly() || c.deps.Settings.DeletionsOnly && !cached.IsDeleting() {
		*left = false
		return reconcile.Result{}
	}
	uid := cached.GetUID()
	// From here on, the memory belongs to this pass. It must be returned on every path: until then, the memory only
	// collects events of the object.
	o, cached := c.acquireMemory(key, uid)
	ended := false
	defer func() {
		unwritten := !ended && o.Changes.HasUnwrittenOutcomes()
		*left = c.releaseMemory(key, uid, o) && unwritten
	}()
	// The object was deleted, replaced or released: forget it without a pass.
	if ended = cached == nil || o.HasEnded(cached) || c.wasDeletedMeanwhile(key, uid); ended {
		c.unhandled.ForgetObject(uid)
		return reconcile.Result{}
	}
	// While the framework fails for this object, its passes are spaced.
	if wait := o.Throttle.RemainingDelay(time.Now()); wait > 0 {
		return retryAfterDelay(cached, wait)
	}
	c.unhandled.BeginPass(uid)
	// Nothing to do: the state is our own write, or the object has no handlers to call and no memory.
	if o.IsEcho(cached) && !woken || c.ownership == nil && c.needsNoWork(o, cached) {
		c.recordProgress(uid, changes.PassResult{}, nil)
	} else {
		result = c.handleObject(ctx, o, cached)
	}
	return result
}

// acquireMemory acquires the memory of an object, then reads the cache again. The order matters: the memory drops our
// own write when the informer delivers it, so a cache read earlier could be older than both. The object is nil if the
// cache does not have this uid any more. The caller must return the memory with [Controller.releaseMemory].
func (c *Controller) acquireMemory(
	key types.NamespacedName, uid types.UID,
) (*memory.ObjectState, *compact.CachedObject) {
	o := c.objects.BeginPass(uid)
	if cached := c.cachedObject(key); cached != nil && cached.GetUID() == uid {
		return o, cached
	}
	return o, nil
}

// releaseMemory returns the memory after a pass. If the informer brought a state during the pass that is not our own
// write, it requests another pass. It returns false if the object was deleted: then it drops the memory, which no later
// event would do.
func (c *Controller) releaseMemory(key types.NamespacedName, uid types.UID, o *memory.ObjectState) (kept bool) {
	// Return the memory first: an event from now on requests its own pass.
	news := c.objects.EndPass(uid, o)
	if c.wasDeletedMeanwhile(key, uid) {
		c.objects.ForgetObject(uid)
		c.background.ForgetObject(uid)
		c.unhandled.ForgetObject(uid)
		return false
	}
	// The event came during the pass, when it could not be decided whether it needs another one.
	if news.Object != nil {
		c.unhandled.NoteEvent(uid, news.Since)
		c.addToQueue(source.Request{NamespacedName: key}, 0, priorityOf(news.Object, source.PriorityChange))
	}
	return true
}

// needsNoWork reports whether the object needs no work and has no memory. It does not decode the object.
func (c *Controller) needsNoWork(o *memory.ObjectState, cached *compact.CachedObject) bool {
	return o.IsEmpty() && c.changes.IgnoresObject(cached)
}

// handleObject handles the changes of the object, then its children, and returns when to look at it again.
func (c *Controller) handleObject(
	ctx context.Context, o *memory.ObjectState, cached *compact.CachedObject,
) reconcile.Result {
	key, uid := cached.ObjectKey(), cached.GetUID()
	ctx = logf.IntoContext(ctx, logging.OfObject(c.log, key, uid))
	next, err := c.handleChanges(ctx, o, cached)
	c.recordProgress(uid, next, err)
	// The watch will report this deletion again; optional deletion handlers must not run twice.
	if next.DeletionHandled && c.disappearedObjects != nil {
		c.disappearedObjects.noteHandled(uid)
	}
	// Lost means that another client removed our memory on the object. The pass has reacted to that and to loops
	// already; metrics only count them.
	if next.MemoryLost {
		c.deps.Metrics.CountLoss(c.resource.GroupKind().String())
	}
	if len(next.LoopingHandlers) > 0 {
		c.deps.Metrics.CountLoops(c.resource.GroupKind().String(), next.LoopingHandlers)
	}
	latest := c.cachedObject(key)
	// The cache may have received our own write already. Compare with its newest state before the memory is returned,
	// so that the echo needs no further pass.
	o.ApplyPassResult(cached, next, latest)
	if c.ownership != nil {
		next.RequeueAfter = c.reconcileChildren(ctx, o, latest, uid, next.RequeueAfter)
	}
	return c.concludePass(ctx, cached, latest, o, next, err)
}

// handleChanges decodes the object and runs the change handlers. It skips objects that need no work.
func (c *Controller) handleChanges(
	ctx context.Context, o *memory.ObjectState, cached *compact.CachedObject,
) (changes.PassResult, error) {
	if c.ownership != nil && c.needsNoWork(o, cached) { // without children, pass has checked this already
		return changes.PassResult{}, nil
	}
	newest, err := o.NewestState(cached)
	if err != nil {
		return changes.PassResult{}, err
	}
	return c.changes.Reconcile(ctx, newest, &o.Changes)
}

// recordProgress updates the metrics of unfinished changes after a pass.
func (c *Controller) recordProgress(uid types.UID, next changes.PassResult, err error) {
	switch {
	case c.unhandled == nil:
		return
	case next.Gone:
		c.unhandled.ForgetObject(uid)
		return
	case err != nil:
		// The change is unfinished, whatever the error was.
		c.unhandled.KeepOpen(uid, time.Time{}, nil)
		return
	case next.HasOpenChange:
		c.unhandled.KeepOpen(uid, next.OpenSince, next.WaitingHandlers)
		return
	}
	// Nothing is left to do. A closed cause is reported with the time from its first event.
	if took := c.unhandled.FinishChange(uid); next.ClosedReason != "" {
		c.deps.Metrics.ObserveLatency(c.resource.GroupKind().String(), string(next.ClosedReason), took)
	}
}

// deliverEvents calls the event handlers with the events since the last pass, and writes their changes, before the pass
// does anything else. It returns the delay until it must be called again; zero means that the next event is enough.
func (c *Controller) deliverEvents(
	ctx context.Context, key types.NamespacedName, cached *compact.CachedObject,
) (wait time.Duration) {
	if c.events == nil {
		return 0
	}
	handling := &c.events.handling
	// Events wait per name, so that the events of a former object with this name come first.
	patch, wait := handling.DeliverNext(ctx, key, c.events.queue.TakeAll(key))
	if cached == nil || patch.IsEmpty() {
		return wait
	}
	// Event handlers can run for long. Acquire the memory only for the write, and check that the object still exists.
	uid := cached.GetUID()
	o, cached := c.acquireMemory(key, uid)
	defer c.releaseMemory(key, uid, o)
	if cached == nil || o.HasEnded(cached) || c.wasDeletedMeanwhile(key, uid) {
		return wait
	}
	ctx = logf.IntoContext(ctx, logging.OfObject(c.log, key, uid))
	newest, err := o.NewestState(cached)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read an object; dropping the changes of event handlers")
		return wait
	}
	body, _ := newest.Value() // Newest has decoded it without an error
	result := handling.WriteChanges(ctx, body, patch)
	o.NoteWrite(result.Body, result.Released)
	c.deps.Metrics.CountLoops(c.resource.GroupKind().String(), handling.NoteWrite(ctx, key, body, result))
	return wait
}

// requestLogger returns the controller's logger for all requests. Controller-runtime adds an id for each request; the
// logger defers that work until a line is written, which is rare.
func (c *Controller) requestLogger(*source.Request) logr.Logger { return logging.DeferAllValues(c.log) }

// concludePass turns the end of a pass into the next request for the object.
func (c *Controller) concludePass(
	ctx context.Context, seen, latest *compact.CachedObject, o *memory.ObjectState, next changes.PassResult, err error,
) reconcile.Result {
	var blocked *changes.BlockedError
	switch {
	case errors.As(err, &blocked):
		// A blocked object waits for its next change, so it is not requeued. The reason is logged once.
		c.journal.ForObject(seen.ObjectKey(), seen.GetUID()).RecordHold(journal.HeldBlocked, err, time.Time{})
		if o.NoteBlocked(err.Error()) {
			logf.FromContext(ctx).Error(err, "Cannot handle the object until it is changed",
				append(panics.StackFields(err), "handlers", c.handlerIDs())...)
		}
		o.Throttle.ResetFailures()
		return reconcile.Result{}
	case err != nil:
		return c.postponeAfterError(ctx, seen, latest, o, err)
	}
	// The next error of this object is new, and is logged with its stack.
	o.NoteSuccess()
	if next.RequeueAfter != nil {
		return retryAfterDelay(latest, *next.RequeueAfter)
	}
	return reconcile.Result{}
}

// postponeAfterError delays an object after an error of the framework. Errors of handlers do not come here: they have
// delays of their own.
func (c *Controller) postponeAfterError(
	ctx context.Context, seen, latest *compact.CachedObject, o *memory.ObjectState, err error,
) reconcile.Result {
	log := logf.FromContext(ctx).WithValues(append(panics.StackFields(err), "handlers", c.handlerIDs())...)
	if o.IsRepeatedPanic(err) {
		log = logr.Discard() // a stack was logged before for this panic
	}
	// The delay is at least the one that the API server requested by Retry-After.
	delay, again := o.Throttle.CountFailure(c.deps.Settings.ErrorDelays, transport.RetryAfter(err), time.Now())
	held := c.journal.ForObject(seen.ObjectKey(), seen.GetUID())
	if !again {
		held.RecordHold(journal.HeldError, err, time.Time{})
		log.Error(err, "Cannot handle the object now; waiting for its next event")
		return reconcile.Result{}
	}
	held.RecordHold(journal.HeldError, err, time.Now().Add(delay))
	log.Error(err, "Cannot handle the object now; retrying", "after", delay.String())
	return retryAfterDelay(latest, delay)
}

// withEarlierRequeue requeues after the delay, unless the result requeues earlier.
func withEarlierRequeue(result reconcile.Result, delay time.Duration) reconcile.Result {
	if result.RequeueAfter <= 0 || delay < result.RequeueAfter {
		result.RequeueAfter = delay
	}
	return result
}

// retryAfterDelay requeues after the delay, with the priority of a retry, or that of deletions for an object that is
// being deleted. The delay is positive, because zero would not requeue.
func retryAfterDelay(cached *compact.CachedObject, delay time.Duration) reconcile.Result {
	priority := priorityOf(cached, source.PriorityRetry)
	return reconcile.Result{RequeueAfter: max(delay, time.Nanosecond), Priority: &priority}
}
