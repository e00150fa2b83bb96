package indexes

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// Feed passes the events of one list and its watch to an Indexer. When a later feed has finished its list, it replaces
// the earlier ones. Until then, all feeds count, so that the indices are never behind the newest one.
type Feed struct {
	indexer  *Indexer
	number   int           // the number of the feed; later feeds have higher numbers
	done     chan struct{} // closed when the feed does not count any more
	filled   chan struct{} // closed when the list is indexed, or cannot be
	fillOnce sync.Once
}

// feedReport is the last report about an object while there are several feeds. The other feeds can be behind it.
type feedReport struct {
	feedNumber      int    // the number of the feed
	version         string // the resource version of the object
	gone            bool   // the object was deleted
	heldByOtherFeed bool   // another feed still has the object, and will report its end
}

// IndexTask is the work of an Indexer.
type IndexTask struct {
	// Handlers are the index functions, in the order of registration.
	Handlers []*adapters.HandlerChain
	// Resource is the resource of the objects; nil if it is not known.
	Resource *discovery.Resource
	// Backoff is the default delay after temporary errors; zero is 60 seconds.
	Backoff time.Duration
	// Log names the resource.
	Log logr.Logger
}

// BeginFeed adds a feed that starts with its first list.
func (x *Indexer) BeginFeed(task IndexTask) *Feed {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.addFeed(task)
}

// addFeed adds a feed. The caller holds the lock.
func (x *Indexer) addFeed(task IndexTask) *Feed {
	// All feeds share the task of the latest one.
	x.task, x.question.Now, x.question.Call.Resource = task, time.Now, task.Resource
	x.feedCount++
	f := &Feed{indexer: x, number: x.feedCount, done: make(chan struct{}), filled: make(chan struct{})}
	x.feeds = append(x.feeds, f)
	x.latest.Store(f)
	return f
}

// BeginAlone waits until there is no other feed, and then adds one. It calls filled each time another feed has finished
// its list, or cannot list. It returns nil if the context ends.
func (x *Indexer) BeginAlone(ctx context.Context, task IndexTask, filled func()) *Feed {
	for ctx.Err() == nil {
		other := x.latest.Load() // an atomic read: an index function can hold the lock for long
		// Without another feed, begin now, unless one has begun meanwhile.
		if other == nil {
			var f *Feed
			if f, other = x.beginFirst(task); f != nil {
				return f
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-other.done:
			continue
		case <-other.filled:
			filled()
		}
		// The indices are filled, so the handlers can run. Wait for the end of the other feed.
		select {
		case <-ctx.Done():
		case <-other.done:
		}
	}
	return nil
}

// beginFirst adds a feed, or returns the one that was added meanwhile.
func (x *Indexer) beginFirst(task IndexTask) (f, other *Feed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if other = x.latest.Load(); other != nil {
		return nil, other
	}
	return x.addFeed(task), nil
}

// Done returns a channel that is closed when the feed does not count any more: it has ended, or a later one has listed.
func (f *Feed) Done() <-chan struct{} { return f.done }

// EndFeed removes a feed that gets no more events. Its entries stay in the indices. A nil Feed does nothing.
func (f *Feed) EndFeed() {
	if f == nil {
		return
	}
	f.indexer.mu.Lock()
	defer f.indexer.mu.Unlock()
	f.indexer.removeFeed(f)
}

// removeFeed removes a feed. It also drops the reports if no feed is left, or if the latest one was removed. The caller
// holds the lock.
func (x *Indexer) removeFeed(f *Feed) {
	left := x.feeds[:0:0]
	for _, other := range x.feeds {
		if other != f {
			left = append(left, other)
		}
	}
	if len(left) < len(x.feeds) {
		close(f.done)
	}
	x.feeds = left
	if len(left) == 0 {
		x.latest.Store(nil) // a feed that waits in [Indexer.BeginAlone] can begin
		clear(x.reports)
	} else if latest := left[len(left)-1]; f.number > latest.number {
		x.latest.Store(latest)
		clear(x.reports)
	}
}

// GiveUp reports that the feed cannot list for a lasting reason, such as missing permissions: handlers stop waiting.
func (f *Feed) GiveUp() { f.fillOnce.Do(func() { close(f.filled) }) }

// FinishList reports the end of the first list, at this resource version. Objects that were not in the list are removed
// from the indices, unless another feed has reported a later state, and returned to the caller. Earlier feeds end.
func (f *Feed) FinishList(version string) (missed []types.UID) {
	// Feeds that wait in [Indexer.BeginAlone] report the indices as filled.
	f.GiveUp()
	x := f.indexer
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.isOver() {
		return nil
	}
	// This list replaces the earlier feeds.
	for len(x.feeds) > 0 && x.feeds[0].number < f.number {
		x.removeFeed(x.feeds[0])
	}
	// Forget the reports that this list includes.
	for uid, said := range x.reports {
		if said.feedNumber == f.number || !said.heldByOtherFeed && !patching.IsNewerVersion(said.version, version) {
			delete(x.reports, uid) // the list is newer than the report
		}
	}
	// Objects that only earlier feeds have reported are not in this list.
	for uid, listing := range x.feedNumbers {
		if _, later := x.reports[uid]; listing < f.number && !later {
			x.forgetObject(uid)
			missed = append(missed, uid)
		}
	}
	return missed
}

// HandleEvent updates the indices for an event, on the goroutine of the informer. The event type is empty in the first
// list. It returns false if the feed does not count any more.
func (f *Feed) HandleEvent(eventType string, object *compact.CachedObject) (counts bool) {
	x, uid := f.indexer, object.GetUID()
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.isOver() {
		return false
	}
	// An object that left the selector can still exist, so its end is not final.
	if eventType == eventDeleted || eventType == EventLeft {
		x.forgetObject(uid)
		x.noteReport(uid, feedReport{feedNumber: f.number, version: object.GetResourceVersion(),
			gone: eventType == eventDeleted})
		return true
	}
	// Another feed has reported a newer state: keep its entries.
	if said, is := x.reports[uid]; is && said.feedNumber != f.number && said.isNewerThan(object) {
		said.heldByOtherFeed = true
		x.reports[uid] = said
		// The object stays known: it is not missing from the list of this feed.
		if !said.gone {
			x.feedNumbers[uid] = max(x.feedNumbers[uid], f.number)
		}
		return true
	}
	// Index the state, and keep the report while other feeds are behind.
	x.noteReport(uid, feedReport{feedNumber: f.number, version: object.GetResourceVersion()})
	x.indexObject(eventType, object, max(x.feedNumbers[uid], f.number))
	return true
}

// isNewerThan reports whether the report is newer than this state of the object. A deletion is always newer.
func (t feedReport) isNewerThan(object *compact.CachedObject) bool {
	return t.gone || patching.IsNewerVersion(t.version, object.GetResourceVersion())
}

// noteReport keeps a report while other feeds can be behind. The caller holds the lock.
func (x *Indexer) noteReport(uid types.UID, said feedReport) {
	if len(x.feeds) < 2 { // a single feed cannot be behind
		delete(x.reports, uid)
		return
	}
	if x.reports == nil {
		x.reports = map[types.UID]feedReport{}
	}
	x.reports[uid] = said
}

// isOver reports whether the feed has ended or was replaced.
func (f *Feed) isOver() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// RemoveAll removes all objects, for example of a kind that is not served any more, and returns their UIDs.
func (x *Indexer) RemoveAll() (gone []types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for uid := range x.feedNumbers {
		x.forgetObject(uid)
		gone = append(gone, uid)
	}
	clear(x.reports)
	return gone
}
