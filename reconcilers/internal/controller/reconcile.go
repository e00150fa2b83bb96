package controller

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

var _ reconcile.TypedReconciler[source.Request] = (*Controller)(nil)

// Reconcile waits until handlers may run at all, and hands the request over to a goroutine. So what the controller of
// controller-runtime waits for is the next turn, with its place, and nothing else.
func (c *Controller) Reconcile(ctx context.Context, request source.Request) (reconcile.Result, error) {
	from := c.queue.Load()
	if !c.turn.Readiness.Wait(ctx) || !c.enter() {
		from.Release(request)
		return reconcile.Result{}, nil
	}
	c.recount(request)
	passing := logf.IntoContext(c.passing, logf.FromContext(ctx))
	c.passes.Go(func() {
		defer from.Release(request)
		if left := c.work(passing, from, request); !left || !c.keep(passing, request) {
			c.leave()
		}
	})
	return reconcile.Result{}, nil
}

// enter counts the beginning of a pass, which a closed gate forbids. All is listed anew when it opens.
func (c *Controller) enter() bool { return c.turn.Gate == nil || c.turn.Gate.Enter() }

// recount is for a pass that has entered: what a former one has left to be written is counted with it.
func (c *Controller) recount(request source.Request) {
	if request.Handler != "" {
		return
	}
	c.unwritten.mu.Lock()
	defer c.unwritten.mu.Unlock()
	if c.unwritten.keys[request.NamespacedName] {
		delete(c.unwritten.keys, request.NamespacedName)
		c.leave()
	}
}

func (c *Controller) leave() {
	if c.turn.Gate != nil {
		c.turn.Gate.Leave()
	}
}

// work does what is requested, and has the queue do what follows. A panic is an error here: it would end the process
// otherwise. It tells whether something that handlers did is left to be written.
func (c *Controller) work(ctx context.Context, from *source.PriorityQueue, request source.Request) (left bool) {
	result, left, err := c.contained(ctx, request)
	switch {
	case err != nil:
		log := logging.OfObject(logf.FromContext(ctx), request.NamespacedName, c.known(request.NamespacedName))
		log.Error(err, "Cannot handle the object now; retrying", panics.Stack(err)...)
		from.AddRateLimited(request)
	case result.RequeueAfter > 0:
		from.Forget(request)
		from.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, request)
	default:
		from.Forget(request)
	}
	return left
}

func (c *Controller) contained(
	ctx context.Context, request source.Request,
) (result reconcile.Result, left bool, err error) {
	err = panics.Contain(func() error {
		if request.Handler != "" {
			c.fireTimer(request)
		} else {
			result, left = c.pass(ctx, request.NamespacedName)
		}
		return nil
	})
	return result, left, err
}

// pass is one look at one object: its raw events, then its changes, which start and stop what runs in the background.
// Errors never leave it: they are logged once, and delay this object alone. It tells whether something that handlers
// did is left to be written.
//
// The cache is asked at the beginning, when the memory is there, and once more at the end, as it has moved on. If all
// that it has come to is our own write, for which nothing is to be done, raw events are all there is to see to, unless
// the pass was asked for.
func (c *Controller) pass(ctx context.Context, key types.NamespacedName) (result reconcile.Result, left bool) {
	defer c.notifyDeleted(key)
	woken := c.objects.TakeWake(key)
	ctx = logf.IntoContext(ctx, c.log)
	cached := c.cached(key)
	if wait := c.deliverEvents(ctx, key, cached); wait > 0 {
		defer func() { result = sooner(result, wait) }()
	}
	if c.disappeared != nil {
		c.callForDisappeared(ctx, key)
	}
	if cached == nil || c.owned != nil && c.owned.idle {
		return reconcile.Result{}, false
	}
	uid := cached.GetUID()
	o, cached := c.take(key, uid)
	defer func() { left = c.put(key, uid, o) && left }()
	if cached == nil || o.Past(cached) || c.goneMeanwhile(key, uid) {
		c.unhandled.Forget(uid)
		return reconcile.Result{}, false
	}
	if wait := o.Throttle.Wait(time.Now()); wait > 0 {
		return retry(cached, wait), o.Changes.Unwritten()
	}
	c.unhandled.Begin(uid)
	if o.Echoes(cached) && !woken || c.owned == nil && c.leavesAlone(o, cached) {
		c.tellProgress(uid, changes.Next{}, nil)
	} else {
		result = c.attend(ctx, o, cached)
	}
	return result, o.Changes.Unwritten()
}

// take gives the memory of an object, and then what the cache has: at least what the memory does not know any more, as
// it forgets our own writes when the informer brings them. That is nil if the object has gone from the cache.
func (c *Controller) take(key types.NamespacedName, uid types.UID) (*memory.Object, *compact.Object) {
	o := c.objects.Take(uid)
	if cached := c.cached(key); cached != nil && cached.GetUID() == uid {
		return o, cached
	}
	return o, nil
}

// put ends what take has begun. What has come meanwhile has the next pass, unless it is what this one has written. It
// is false if the object has gone: nobody else forgets what the pass kept.
func (c *Controller) put(key types.NamespacedName, uid types.UID, o *memory.Object) (kept bool) {
	news := c.objects.Put(uid, o)
	if c.goneMeanwhile(key, uid) {
		c.objects.Forget(uid)
		c.background.Forget(uid)
		c.unhandled.Forget(uid)
		return false
	}
	if news.Object != nil {
		c.unhandled.Seen(uid, news.Since)
		c.add(source.Request{NamespacedName: key}, 0, priorityOf(news.Object, source.PriorityChange))
	}
	return true
}

// leavesAlone tells of an object, without decoding it, that there is nothing to be done for it, and nothing left of it.
func (c *Controller) leavesAlone(o *memory.Object, cached *compact.Object) bool {
	return o.Unknown() && c.changes.LeavesAlone(cached)
}

// attend handles the changes of the object, and looks after its children.
func (c *Controller) attend(ctx context.Context, o *memory.Object, cached *compact.Object) reconcile.Result {
	key, uid := cached.Key(), cached.GetUID()
	ctx = logf.IntoContext(ctx, logging.OfObject(c.log, key, uid))
	next, err := c.handleChanges(ctx, o, cached)
	c.tellProgress(uid, next, err)
	if next.Deletion && c.disappeared != nil {
		c.disappeared.noteHandled(uid)
	}
	if next.Lost {
		c.deps.Metrics.Lost(c.resource.GroupKind().String())
	}
	if len(next.Looping) > 0 {
		c.deps.Metrics.Looped(c.resource.GroupKind().String(), next.Looping)
	}
	latest := c.cached(key)
	o.Proceed(cached, next, latest)
	if c.owned != nil {
		next.After = c.tend(ctx, o, latest, uid, next.After)
	}
	return c.conclude(ctx, cached, latest, o, next, err)
}

// handleChanges decodes the object for all that a pass asks of it, if there is anything.
func (c *Controller) handleChanges(
	ctx context.Context, o *memory.Object, cached *compact.Object,
) (changes.Next, error) {
	if c.owned != nil && c.leavesAlone(o, cached) { // without owners, the pass has asked
		return changes.Next{}, nil
	}
	newest, err := o.Newest(cached)
	if err != nil {
		return changes.Next{}, err
	}
	return c.changes.Reconcile(ctx, newest, &o.Changes)
}

// tellProgress notes for the metrics how far a pass has brought its object.
func (c *Controller) tellProgress(uid types.UID, next changes.Next, err error) {
	switch {
	case c.unhandled == nil:
		return
	case next.Gone:
		c.unhandled.Forget(uid)
		return
	case err != nil:
		c.unhandled.Leave(uid, time.Time{}, nil)
		return
	case next.Open:
		c.unhandled.Leave(uid, next.Since, next.Waiting)
		return
	}
	if took := c.unhandled.End(uid); next.Closed != "" {
		c.deps.Metrics.Handled(c.resource.GroupKind().String(), string(next.Closed), took)
	}
}

// deliverEvents calls the event handlers with the events since the last pass, before anything else is done for the
// object. It returns the delay until it has to be called again; zero waits for the next event.
func (c *Controller) deliverEvents(
	ctx context.Context, key types.NamespacedName, cached *compact.Object,
) (wait time.Duration) {
	if c.events == nil {
		return 0
	}
	handling := &c.events.handling
	patch, wait := handling.DeliverNext(ctx, key, c.events.waiting.Take(key))
	if cached == nil || patch.Empty() {
		return wait
	}
	uid := cached.GetUID()
	o, cached := c.take(key, uid)
	defer c.put(key, uid, o)
	if cached == nil || o.Past(cached) || c.goneMeanwhile(key, uid) {
		return wait
	}
	ctx = logf.IntoContext(ctx, logging.OfObject(c.log, key, uid))
	newest, err := o.Newest(cached)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read an object; dropping the changes of event handlers")
		return wait
	}
	body, _ := newest.Value() // it is decoded
	result := handling.Write(ctx, body, patch)
	o.Wrote(result.Body, result.Released)
	c.deps.Metrics.Looped(c.resource.GroupKind().String(), handling.NoteWrite(ctx, key, body, result))
	return wait
}

// known returns the uid of the object in the cache, and nothing if it is not there.
func (c *Controller) known(key types.NamespacedName) types.UID {
	if cached := c.cached(key); cached != nil {
		return cached.GetUID()
	}
	return ""
}

// logger is that of the controller, for all requests: each of them gets an id, which is in hardly any line.
func (c *Controller) logger(*source.Request) logr.Logger { return logging.Deferring(c.log) }

// cached gives the object of the cache; nil if it has none. It is shared: callers must not modify it.
func (c *Controller) cached(key types.NamespacedName) *compact.Object {
	// An index of the usual kind has no errors, and a cache of this kind nothing else in it.
	found, _, _ := c.store.GetByKey(toolscache.NewObjectName(key.Namespace, key.Name).String())
	object, _ := found.(*compact.Object)
	return object
}

// goneMeanwhile tells whether the object has gone since it was found in the cache. The informer removes an object from
// the cache first, and from the memory second: if it was in the cache before its memory was taken, or put back, that
// may be the memory of nothing, or stay for ever. An older list may bring it back under its uid, so the cache is
// asked, too. Handlers of events take their time, as the informer may between the two: then the cache alone is asked.
func (c *Controller) goneMeanwhile(key types.NamespacedName, uid types.UID) bool {
	if c.events == nil && !c.objects.Deleted(key, uid) {
		return false
	}
	cached := c.cached(key)
	return cached == nil || cached.GetUID() != uid
}

// conclude turns the end of a pass into what the queue must do.
func (c *Controller) conclude(
	ctx context.Context, seen, latest *compact.Object, o *memory.Object, next changes.Next, err error,
) reconcile.Result {
	var blocked *changes.BlockedError
	switch {
	case errors.As(err, &blocked):
		c.journal.Object(seen.Key(), seen.GetUID()).Hold(journal.HeldBlocked, err, time.Time{})
		if o.Blocks(err.Error()) {
			logf.FromContext(ctx).Error(err, "Cannot handle the object until it is changed",
				append(panics.Stack(err), "handlers", c.handlerIDs())...)
		}
		o.Throttle.Succeed()
		return reconcile.Result{}
	case err != nil:
		return c.postpone(ctx, seen, latest, o, err)
	}
	o.Succeed()
	if next.After != nil {
		return retry(latest, *next.After)
	}
	return reconcile.Result{}
}

// postpone delays an object after an error of the framework.
func (c *Controller) postpone(
	ctx context.Context, seen, latest *compact.Object, o *memory.Object, err error,
) reconcile.Result {
	log := logf.FromContext(ctx).WithValues(append(panics.Stack(err), "handlers", c.handlerIDs())...)
	if o.Repeats(err) {
		log = logr.Discard()
	}
	delay, again := o.Throttle.Fail(c.deps.Settings.ErrorDelays, transport.RetryAfter(err), time.Now())
	held := c.journal.Object(seen.Key(), seen.GetUID())
	if !again {
		held.Hold(journal.HeldError, err, time.Time{})
		log.Error(err, "Cannot handle the object now; waiting for its next event")
		return reconcile.Result{}
	}
	held.Hold(journal.HeldError, err, time.Now().Add(delay))
	log.Error(err, "Cannot handle the object now; retrying", "after", delay.String())
	return retry(latest, delay)
}

// sooner comes back after the delay, if nothing else comes back before.
func sooner(result reconcile.Result, delay time.Duration) reconcile.Result {
	if result.RequeueAfter <= 0 || delay < result.RequeueAfter {
		result.RequeueAfter = delay
	}
	return result
}

// retry comes back after a delay: the priority of the event that led here would stick otherwise.
func retry(cached *compact.Object, delay time.Duration) reconcile.Result {
	priority := priorityOf(cached, source.PriorityRetry)
	return reconcile.Result{RequeueAfter: max(delay, time.Nanosecond), Priority: &priority}
}

// priorityOf is that of all requests for an object that is being deleted or gone, of whatever kind they are.
func priorityOf(cached *compact.Object, otherwise int) int {
	if cached == nil || cached.Deleting() {
		return source.PriorityDeletion
	}
	return otherwise
}
