package indexes

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Feed tells an Indexer of one listing of the objects, and of the watch that follows it. A later feed takes the place
// of an earlier one when it has listed all; until then, both count, so that the indices are never behind.
type Feed struct {
	indexer *Indexer
	listing int // counts the feeds
	over    chan struct{}
	filled  chan struct{}
	filling sync.Once
}

// told is what one feed has said of an object while there were others: they may be behind.
type told struct {
	by      int    // the listing of the feed
	version string // of the object
	gone    bool
	held    bool // another feed knows the object still, and will tell of its end
}

// Task is what an Indexer has to do.
type Task struct {
	// Handlers are the index functions, in the order of registration.
	Handlers []*adapters.Handler
	// Resource is what the objects are; nil is not known.
	Resource *discovery.Resource
	// Backoff is the default delay after temporary errors; zero is 60 seconds.
	Backoff time.Duration
	// Log names the resource.
	Log logr.Logger
}

// Begin starts a feed with its first listing.
func (x *Indexer) Begin(task Task) *Feed {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.begin(task)
}

func (x *Indexer) begin(task Task) *Feed {
	x.task, x.question.Now, x.question.Call.Resource = task, time.Now, task.Resource
	x.listing++
	f := &Feed{indexer: x, listing: x.listing, over: make(chan struct{}), filled: make(chan struct{})}
	x.feeds = append(x.feeds, f)
	x.latest.Store(f)
	return f
}

// BeginAlone is Begin as soon as no other feed runs. The function is called when another one has filled the indices
// before that, or cannot. It gives nil if the context ends.
func (x *Indexer) BeginAlone(ctx context.Context, task Task, filled func()) *Feed {
	for ctx.Err() == nil {
		other := x.latest.Load() // without the lock: that is held as long as an index function runs
		if other == nil {
			var f *Feed
			if f, other = x.beginFirst(task); f != nil {
				return f
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-other.over:
			continue
		case <-other.filled:
			filled()
		}
		select {
		case <-ctx.Done():
		case <-other.over:
		}
	}
	return nil
}

// beginFirst begins a feed, or gives the one that has begun meanwhile.
func (x *Indexer) beginFirst(task Task) (f, other *Feed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if other = x.latest.Load(); other != nil {
		return nil, other
	}
	return x.begin(task), nil
}

// Over is closed when the feed does not count any more: it has ended, or a later one has listed all.
func (f *Feed) Over() <-chan struct{} { return f.over }

// End is for a feed that is told of nothing any more. What it has said stays in the indices. Nil does nothing.
func (f *Feed) End() {
	if f == nil {
		return
	}
	f.indexer.mu.Lock()
	defer f.indexer.mu.Unlock()
	f.indexer.drop(f)
}

// drop takes a feed out of those that count. Without others, nobody is behind.
func (x *Indexer) drop(f *Feed) {
	left := x.feeds[:0:0]
	for _, other := range x.feeds {
		if other != f {
			left = append(left, other)
		}
	}
	if len(left) < len(x.feeds) {
		close(f.over)
	}
	x.feeds = left
	if len(left) == 0 {
		x.latest.Store(nil)
		clear(x.told)
	} else if latest := left[len(left)-1]; f.listing > latest.listing {
		x.latest.Store(latest)
		clear(x.told)
	}
}

// GiveUp is for a feed that cannot list the objects for a reason that does not pass by itself: nobody waits for it.
func (f *Feed) GiveUp() { f.filling.Do(func() { close(f.filled) }) }

// Listed ends the first listing, given the version that the feed has arrived at: objects that it did not have are
// removed, unless another feed has told of something later. They are given to the caller. Earlier feeds are over.
func (f *Feed) Listed(version string) (missed []types.UID) {
	f.GiveUp()
	x := f.indexer
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.isOver() {
		return nil
	}
	for len(x.feeds) > 0 && x.feeds[0].listing < f.listing {
		x.drop(x.feeds[0])
	}
	for uid, said := range x.told {
		if said.by == f.listing || !said.held && !patching.Newer(said.version, version) {
			delete(x.told, uid) // the listing is what counts
		}
	}
	for uid, listing := range x.known {
		if _, later := x.told[uid]; listing < f.listing && !later {
			x.forget(uid)
			missed = append(missed, uid)
		}
	}
	return missed
}

// Seen updates the indices for an event, on the goroutine of the informer. The type of the event is empty in the first
// listing. It tells whether the feed counts still.
func (f *Feed) Seen(eventType string, object *compact.Object) (counts bool) {
	x, uid := f.indexer, object.GetUID()
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.isOver() {
		return false
	}
	if eventType == deleted || eventType == Left {
		x.forget(uid)
		x.note(uid, told{by: f.listing, version: object.GetResourceVersion(), gone: eventType == deleted})
		return true
	}
	if said, is := x.told[uid]; is && said.by != f.listing && said.after(object) {
		said.held = true
		x.told[uid] = said
		if !said.gone {
			x.known[uid] = max(x.known[uid], f.listing)
		}
		return true
	}
	x.note(uid, told{by: f.listing, version: object.GetResourceVersion()})
	x.see(eventType, object, max(x.known[uid], f.listing))
	return true
}

// after tells whether what was said is later than this state of the object.
func (t told) after(object *compact.Object) bool {
	return t.gone || patching.Newer(t.version, object.GetResourceVersion())
}

// note remembers what is said while other feeds may be behind.
func (x *Indexer) note(uid types.UID, said told) {
	if len(x.feeds) < 2 {
		delete(x.told, uid)
		return
	}
	if x.told == nil {
		x.told = map[types.UID]told{}
	}
	x.told[uid] = said
}

func (f *Feed) isOver() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// Clear removes all objects, as of a kind that is not served any more, and gives them to the caller.
func (x *Indexer) Clear() (gone []types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for uid := range x.known {
		x.forget(uid)
		gone = append(gone, uid)
	}
	clear(x.told)
	return gone
}
