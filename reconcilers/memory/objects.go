package memory

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// Objects is the memory of one scope, by uid. The queue never runs two passes over one object at once, so only the maps
// need the lock.
type Objects struct {
	mu        sync.Mutex
	resuming  bool // some handlers resume objects that existed before the operator
	listed    bool // the first listing is over: of those that are listed from now on, only unknown objects are resumed
	byUID     map[types.UID]*Object
	handled   map[types.UID]changes.Handled        // of all handled objects: the others need not have an Object
	passing   map[types.UID]News                   // what has come for those that a pass is at work on
	left      map[types.UID]bool                   // objects that existed when a controller ended
	deletions map[types.NamespacedName][]types.UID // as reported by the informer, until the handlers were called
	woken     map[types.NamespacedName]bool        // objects that a pass was asked for without an event
}

// News is what the informer has brought last while a pass was at work, and when. The zero value is nothing.
type News struct {
	Object source.Object
	Since  time.Time
}

// NewObjects makes an empty memory.
func NewObjects() *Objects {
	return &Objects{
		byUID: map[types.UID]*Object{}, handled: map[types.UID]changes.Handled{}, passing: map[types.UID]News{},
	}
}

// Begin starts the run of a controller of the scope. The first one with handlers that resume objects makes MarkInitial
// mark all that is listed, until Leave. Of objects that were deleted when the previous run ended, Missed tells: nobody
// takes their deletions any more.
func (s *Objects) Begin(resuming bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gone := range s.deletions {
		for _, uid := range gone {
			s.leave(uid)
		}
	}
	clear(s.deletions)
	clear(s.woken)
	for _, o := range s.byUID {
		o.settled = "" // what runs in the background begins anew
	}
	if resuming && !s.resuming {
		s.resuming, s.listed = true, false
	}
}

// MarkInitial marks an object that is listed, if there are handlers that resume objects: all of the first listing, and
// those of later ones that are met for the first time, as they came while no controller was running. A mark that was
// made before stays until the object is handled.
func (s *Objects) MarkInitial(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.resuming || s.listed && s.left[uid] {
		return
	}
	o := s.byUID[uid]
	if o == nil {
		o = &Object{}
		s.byUID[uid] = o
	}
	o.Changes.Initial = true
}

// Delete forgets an object that the informer reports as deleted, and keeps its uid for Deleted and TakeDeletions.
func (s *Objects) Delete(obj source.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(obj.GetUID())
	if s.deletions == nil {
		s.deletions = map[types.NamespacedName][]types.UID{}
	}
	key := obj.Key()
	s.deletions[key] = append(s.deletions[key], obj.GetUID())
}

// Deleted tells whether the informer has reported the object as deleted since TakeDeletions. The object may be in the
// cache again, as a list can be older than the one before.
func (s *Objects) Deleted(key types.NamespacedName, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.deletions[key], uid)
}

// TakeDeletions gives the deleted objects of this name, each once.
func (s *Objects) TakeDeletions(key types.NamespacedName) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.deletions[key]
	delete(s.deletions, key)
	return gone
}

// Leave ends the run of a controller whose listing was complete, with what its cache has: nobody reports deletions
// until the next run.
func (s *Objects) Leave(cached []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = true
	for uid := range uidsOf(cached) {
		s.leave(uid)
	}
}

func (s *Objects) leave(uid types.UID) {
	if s.left == nil {
		s.left = map[types.UID]bool{}
	}
	s.left[uid] = true
}

// Missed forgets the objects that were deleted between two runs, or since a listing that was never complete, and gives
// their uids. The cached objects are those of a complete listing.
func (s *Objects) Missed(cached []any) (gone []types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := uidsOf(cached)
	for uid := range s.left {
		if !now[uid] {
			s.forget(uid)
			gone = append(gone, uid)
		}
	}
	s.left = nil
	for uid := range s.byUID {
		if !now[uid] {
			s.forget(uid)
			gone = append(gone, uid)
		}
	}
	for uid := range s.handled {
		if !now[uid] {
			delete(s.handled, uid)
		}
	}
	return gone
}

func uidsOf(cached []any) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(cached))
	for _, item := range cached {
		if obj, ok := item.(source.Object); ok {
			uids[obj.GetUID()] = true
		}
	}
	return uids
}

// Wake notes that a pass is asked for, and not by an event: it is to look at the object even if that is as our own
// write has left it.
func (s *Objects) Wake(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken == nil {
		s.woken = map[types.NamespacedName]bool{}
	}
	s.woken[key] = true
}

// TakeWake tells whether there was a Wake since the last time.
func (s *Objects) TakeWake(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	woken := s.woken[key]
	delete(s.woken, key)
	return woken
}

// Take gives the memory of an object for a pass, which must Put it back, whatever comes of it.
func (s *Objects) Take(uid types.UID) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passing[uid] = News{}
	o := s.byUID[uid]
	if o == nil {
		o = &Object{}
	}
	o.Changes.Handled = s.handled[uid]
	return o
}

// Seen forgets our own write if that is what the informer has brought, or older: the object may wait for its next pass
// for long, and many others with it. A pass that is at work sees to that by itself.
func (s *Objects) Seen(obj source.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, passing := s.passing[obj.GetUID()]
	if o := s.byUID[obj.GetUID()]; o != nil && !passing {
		s.catchUp(o, obj)
	}
}

// TakeEcho is Seen for who would ask for a pass, and tells whether that is not needed, as [Object.Echoes] does. While a
// pass is at work, which may be about to get the answer to this very write, it is for Put to tell.
func (s *Objects) TakeEcho(obj source.Object) (echo bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := obj.GetUID()
	if news, passing := s.passing[uid]; passing {
		if news.Object == nil {
			news.Since = time.Now()
		}
		news.Object = obj
		s.passing[uid] = news
		return true
	}
	o := s.byUID[uid]
	if o == nil {
		return false
	}
	echo = o.Echoes(obj)
	s.catchUp(o, obj)
	return echo
}

func (s *Objects) catchUp(o *Object, obj source.Object) {
	if o.catchUp(obj); o.Unknown() {
		delete(s.byUID, obj.GetUID())
	}
}

// Put keeps the memory, unless there is nothing in it, and gives what TakeEcho was asked about meanwhile if that needs
// a pass.
func (s *Objects) Put(uid types.UID, o *Object) (news News) {
	o.written.pack()
	o.read, o.opened = nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.passing[uid]
	delete(s.passing, uid)
	if news.Object != nil && o.Echoes(news.Object) {
		news = News{}
	}
	if o.Changes.Handled == (changes.Handled{}) {
		delete(s.handled, uid)
	} else {
		s.handled[uid] = o.Changes.Handled
	}
	if o.Unknown() {
		delete(s.byUID, uid)
		return news
	}
	s.byUID[uid] = o
	return news
}

// Hasten lets the next pass over an object begin at once, although the framework has failed for it.
func (s *Objects) Hasten(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.byUID[uid]; o != nil {
		o.Throttle.Succeed()
	}
}

// Forget drops the memory of an object.
func (s *Objects) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(uid)
}

func (s *Objects) forget(uid types.UID) {
	delete(s.byUID, uid)
	delete(s.handled, uid)
}

// Len is how many objects something is kept of.
func (s *Objects) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byUID)
}
