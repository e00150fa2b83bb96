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

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

const (
	// concurrentLookups is the number of concurrent requests. A failed request is repeated after a delay between
	// minLookupBackoff and maxLookupBackoff.
	concurrentLookups = 4
	minLookupBackoff  = time.Second
	maxLookupBackoff  = time.Minute
	// maxExistingUIDs limits how many objects are remembered that exist without matching the selector. If such an
	// object matches again, it is reported as modified, not as added.
	maxExistingUIDs = 10_000
)

// departures tracks the objects that left a watch with a selector. The watch reports DELETED both for a deletion and
// for an object that does not match any more. So the API server is queried before event handlers get a deletion.
type departures struct {
	// lookUpUID returns the uid of the object that has the name now; left is called when an object leaves the watch.
	lookUpUID func(ctx context.Context, of types.NamespacedName) (types.UID, error)
	onLeft    func(obj source.Object)
	log       logr.Logger

	// lookupQueue holds the names to look up, with the backoff of failed lookups.
	lookupQueue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu        sync.Mutex
	uncertain map[types.NamespacedName]departure
	existing  *lru.Cache // uids of objects that left the watch but still exist
}

// departure is one object whose deletion is uncertain.
type departure struct {
	object source.Object
	// onGone reports the object as deleted.
	onGone func()
	failed bool // a lookup has failed and was logged
}

var _ source.DepartureTracker = (*departures)(nil)

// newDepartures creates the tracker. [departures.startLookups] starts its lookups.
func newDepartures(
	uid func(context.Context, types.NamespacedName) (types.UID, error), left func(source.Object), log logr.Logger,
) *departures {
	return &departures{
		lookUpUID: uid, onLeft: left, log: log,
		uncertain: map[types.NamespacedName]departure{}, existing: lru.New(maxExistingUIDs),
		lookupQueue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minLookupBackoff,
				maxLookupBackoff)),
	}
}

// forgetUnmatchedObject handles an object that left the watch and may still exist. It removes the object from the
// indices and from the memory of passes, and records the event in the journal. Event handlers are not called.
func (c *Controller) forgetUnmatchedObject(obj source.Object) {
	if c.journal != nil {
		c.journal.ForObject(obj.ObjectKey(), obj.GetUID()).RecordEvent(indexes.EventLeft, obj.GetResourceVersion())
	}
	if c.feed != nil {
		c.feed.HandleEvent(indexes.EventLeft, obj)
	}
	c.objects.ForgetObject(obj.GetUID())
}

// TrackDeparture starts the lookup of an object that left the watch, and returns true. It returns false if the object
// must be deleted: its deletion had begun, and it had no finalizers left.
func (d *departures) TrackDeparture(obj source.Object, gone func()) (doubtful bool) {
	if obj.IsDeleting() && !hasFinalizers(obj) {
		return false
	}
	// The object does not match in any case, so it leaves the indices now. Only event handlers wait for the lookup.
	d.onLeft(obj)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uncertain[obj.ObjectKey()] = departure{object: obj, onGone: gone}
	d.lookupQueue.Add(obj.ObjectKey())
	return true
}

// hasFinalizers reports whether the object has finalizers. It returns true for an object that cannot be decoded,
// because only a lookup can then decide.
func hasFinalizers(obj source.Object) bool {
	body, err := obj.Unstructured()
	return err != nil || len(body.GetFinalizers()) > 0
}

// TrackReturn ends the lookup of a name when an object with this name matches the selector. It returns true if the
// object existed all the time. If another object has the name, the former one is reported as deleted.
func (d *departures) TrackReturn(obj source.Object) (back bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// The object is in at most one of the two: there after the lookup, waiting before it.
	_, back = d.existing.Get(obj.GetUID())
	d.existing.Remove(obj.GetUID())
	former, doubtful := d.uncertain[obj.ObjectKey()]
	if !doubtful {
		return back
	}
	delete(d.uncertain, obj.ObjectKey())
	if former.object.GetUID() == obj.GetUID() {
		return true
	}
	former.onGone()
	return back
}

// startLookups starts the lookups. The returned function stops them, and waits for running requests.
func (d *departures) startLookups(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	for range concurrentLookups {
		// The queue hands out each name to one goroutine at a time, so a name is never looked up twice at once.
		asking.Go(func() {
			for {
				name, ended := d.lookupQueue.Get()
				if ended {
					return
				}
				if d.lookUpDeparture(ctx, name) {
					d.lookupQueue.AddRateLimited(name)
				} else {
					d.lookupQueue.Forget(name)
				}
				d.lookupQueue.Done(name)
			}
		})
	}
	return func() {
		cancel()
		d.lookupQueue.ShutDown()
		asking.Wait()
	}
}

// lookUpDeparture looks up one object by name, and decides whether it was deleted. It returns true if the lookup must
// be repeated.
func (d *departures) lookUpDeparture(ctx context.Context, name types.NamespacedName) (again bool) {
	d.mu.Lock()
	asked, doubtful := d.uncertain[name]
	d.mu.Unlock()
	if !doubtful || ctx.Err() != nil {
		return false
	}
	// The request runs without the lock. An event can change the entry meanwhile; the answer is then worthless, and
	// only a newer entry is looked up again.
	uid, err := d.lookUpUID(ctx, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	now, doubtful := d.uncertain[name]
	if !doubtful || now.object != asked.object || ctx.Err() != nil {
		return doubtful && ctx.Err() == nil
	}
	log := logging.OfObject(d.log, name, asked.object.GetUID())
	switch {
	case err == nil, apierrors.IsNotFound(err): // NotFound can also mean that the kind is gone
	case apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsInvalid(err):
		// These answers do not change when the request is repeated.
		log.Error(err, "Cannot determine whether an object was deleted or no longer matches; reporting it as deleted")
	default:
		if !now.failed {
			log.Error(err, "Cannot determine whether an object was deleted or no longer matches; retrying")
		}
		now.failed = true
		d.uncertain[name] = now
		return true
	}
	delete(d.uncertain, name)
	// Another uid means that the name was reused, so the former object was deleted.
	if uid == now.object.GetUID() {
		d.existing.Add(uid, true)
	} else {
		now.onGone()
	}
	return false
}
