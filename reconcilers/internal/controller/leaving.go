package controller

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

const (
	// lookups are made so many at once, and again after these delays if they fail.
	lookups       = 4
	firstRelook   = time.Second
	longestRelook = time.Minute
	// mostThere is of how many it is known that they are there, and not new if they come back.
	mostThere = 10_000
)

// departures are the objects that a watch with a selector shows no more. The API server says of those that do not match
// any more that they are gone, too: so it is asked, before handlers are told.
type departures struct {
	uid  func(ctx context.Context, of types.NamespacedName) (types.UID, error)
	left func(obj source.Object)
	log  logr.Logger

	names workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu      sync.Mutex
	waiting map[types.NamespacedName]departure
	there   *lru.Cache // uids of those that have left, and are there
}

// departure is one of them, with what is to be called if it is gone.
type departure struct {
	object source.Object
	gone   func()
	failed bool // it was asked for in vain, and the log says so
}

var _ source.Doubts = (*departures)(nil)

func departuresOf(
	uid func(context.Context, types.NamespacedName) (types.UID, error), left func(source.Object), log logr.Logger,
) *departures {
	return &departures{
		uid: uid, left: left, log: log,
		waiting: map[types.NamespacedName]departure{}, there: lru.New(mostThere),
		names: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRelook, longestRelook)),
	}
}

// left is for an object that may be there, but is shown no more: as one whose labels do not match, it is in no index,
// and handlers of events hear nothing of it.
func (c *Controller) left(obj source.Object) {
	if c.journal != nil {
		c.journal.Object(obj.Key(), obj.GetUID()).Event(indexes.Left, obj.GetResourceVersion())
	}
	if c.feed != nil {
		c.feed.Seen(indexes.Left, obj)
	}
	c.objects.Forget(obj.GetUID())
}

// Leave has the API server asked, unless the object must be gone: it was being deleted, and nothing held it.
func (d *departures) Leave(obj source.Object, gone func()) (doubtful bool) {
	if obj.Deleting() && !held(obj) {
		return false
	}
	d.left(obj)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[obj.Key()] = departure{object: obj, gone: gone}
	d.names.Add(obj.Key())
	return true
}

// held tells whether an object has finalizers, as far as it can be read.
func held(obj source.Object) bool {
	body, err := obj.Unstructured()
	return err != nil || len(body.GetFinalizers()) > 0
}

// Meet ends the doubts about the name: the object is back, or another one has taken its place.
func (d *departures) Meet(obj source.Object) (back bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, back = d.there.Get(obj.GetUID())
	d.there.Remove(obj.GetUID())
	former, doubtful := d.waiting[obj.Key()]
	if !doubtful {
		return back
	}
	delete(d.waiting, obj.Key())
	if former.object.GetUID() == obj.GetUID() {
		return true
	}
	former.gone()
	return back
}

// begin asks until the function that it gives is called.
func (d *departures) begin(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	for range lookups {
		asking.Go(func() {
			for {
				name, ended := d.names.Get()
				if ended {
					return
				}
				if d.ask(ctx, name) {
					d.names.AddRateLimited(name)
				} else {
					d.names.Forget(name)
				}
				d.names.Done(name)
			}
		})
	}
	return func() {
		cancel()
		d.names.ShutDown()
		asking.Wait()
	}
}

// ask finds out what became of an object, and tells whether it is to be asked again.
func (d *departures) ask(ctx context.Context, name types.NamespacedName) (again bool) {
	d.mu.Lock()
	asked, doubtful := d.waiting[name]
	d.mu.Unlock()
	if !doubtful || ctx.Err() != nil {
		return false
	}
	uid, err := d.uid(ctx, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	now, doubtful := d.waiting[name]
	if !doubtful || now.object != asked.object || ctx.Err() != nil {
		return doubtful && ctx.Err() == nil
	}
	log := logging.OfObject(d.log, name, asked.object.GetUID())
	switch {
	case err == nil, apierrors.IsNotFound(err): // or the kind is
	case apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsInvalid(err):
		log.Error(err, "Cannot determine whether an object was deleted or no longer matches; reporting it as deleted")
	default:
		if !now.failed {
			log.Error(err, "Cannot determine whether an object was deleted or no longer matches; retrying")
		}
		now.failed = true
		d.waiting[name] = now
		return true
	}
	delete(d.waiting, name)
	if uid == now.object.GetUID() {
		d.there.Add(uid, true)
	} else {
		now.gone()
	}
	return false
}
