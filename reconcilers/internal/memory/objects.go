package memory

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// Objects stores the memory of one scope by uid. Workers and the informer use it concurrently. The queue never runs two
// passes over one object at once, so the lock guards only the maps, and the entries between passes.
type Objects struct {
	mu                sync.Mutex
	hasResumeHandlers bool // some handlers resume objects that existed before the operator
	hasListed         bool // the first listing is complete: later listings mark only objects that were unknown before
	byUID             map[types.UID]*ObjectState
	handled           map[types.UID]changes.HandledState   // of every handled object, including those without an Object
	runningPasses     map[types.UID]PendingEvent           // the last event during the running pass; zero without one
	cachedAtRunEnd    map[types.UID]bool                   // objects that existed when a controller ended
	deletions         map[types.NamespacedName][]types.UID // reported by the informer, until the handlers were called
	requestedPasses   map[types.NamespacedName]bool        // passes that were requested without an event
}

// PendingEvent is the last state that the informer delivered during a pass. Since is when the first one arrived. The
// zero value means that there was none.
type PendingEvent struct {
	Object source.Object
	Since  time.Time
}

// NewObjects returns an empty memory.
func NewObjects() *Objects {
	return &Objects{
		byUID: map[types.UID]*ObjectState{}, handled: map[types.UID]changes.HandledState{},
		runningPasses: map[types.UID]PendingEvent{},
	}
}

// BeginRun starts a run of a controller of the scope. With the first run that has resume handlers, MarkInitial begins
// to mark listed objects. Deletions that the previous run did not take are moved to the objects that
// [Objects.ForgetMissing] compares with the next listing.
func (s *Objects) BeginRun(resuming bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gone := range s.deletions {
		for _, uid := range gone {
			s.markCachedAtRunEnd(uid)
		}
	}
	clear(s.deletions)
	clear(s.requestedPasses)
	for _, o := range s.byUID {
		// Background handlers start again, so every object needs a pass.
		o.settledVersion = ""
	}
	if resuming && !s.hasResumeHandlers {
		s.hasResumeHandlers, s.hasListed = true, false
	}
}

// MarkInitial marks a listed object as initial if there are resume handlers. It marks all objects of the first listing.
// Of later listings, it marks those that are new, because they were created while no controller ran. A mark stays until
// the object is handled.
func (s *Objects) MarkInitial(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasResumeHandlers || s.hasListed && s.cachedAtRunEnd[uid] {
		return
	}
	o := s.byUID[uid]
	if o == nil {
		o = &ObjectState{}
		s.byUID[uid] = o
	}
	o.Changes.Initial = true
}

// NoteDeletion drops the memory of an object that the informer reports as deleted. It keeps the uid for
// [Objects.WasDeleted] and [Objects.TakeDeletions].
func (s *Objects) NoteDeletion(obj source.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(obj.GetUID())
	if s.deletions == nil {
		s.deletions = map[types.NamespacedName][]types.UID{}
	}
	key := obj.ObjectKey()
	s.deletions[key] = append(s.deletions[key], obj.GetUID())
}

// WasDeleted reports whether the informer has reported the object as deleted since the last TakeDeletions. The cache
// may have the object again, because a list can be older than the previous one.
func (s *Objects) WasDeleted(key types.NamespacedName, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.deletions[key], uid)
}

// CountDeletions returns how many deleted objects of this name there are since the last TakeDeletions.
func (s *Objects) CountDeletions(key types.NamespacedName) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.deletions[key])
}

// TakeDeletions returns the first deleted objects of this name and removes them, so that each is returned once.
func (s *Objects) TakeDeletions(key types.NamespacedName, count int) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.deletions[key]
	// A run that has ended and begun again has taken them over.
	count = min(count, len(all))
	if count == len(all) {
		delete(s.deletions, key)
	} else {
		s.deletions[key] = all[count:]
	}
	return all[:count:count]
}

// EndRun ends the run of a controller whose listing was complete. It stores which objects are cached now: until the
// next run, deletions are not reported.
func (s *Objects) EndRun(cached []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasListed = true
	for uid := range uidsOf(cached) {
		s.markCachedAtRunEnd(uid)
	}
}

// markCachedAtRunEnd records that the object existed at the end of a run. The caller holds the lock.
func (s *Objects) markCachedAtRunEnd(uid types.UID) {
	if s.cachedAtRunEnd == nil {
		s.cachedAtRunEnd = map[types.UID]bool{}
	}
	s.cachedAtRunEnd[uid] = true
}

// ForgetMissing drops the objects that were deleted between two runs, or since a listing that never completed, and
// returns their uids. The cached objects must be those of a complete listing, or live objects would be dropped.
func (s *Objects) ForgetMissing(cached []any) (gone []types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := uidsOf(cached)
	for uid := range s.cachedAtRunEnd {
		if !now[uid] {
			s.forgetLocked(uid)
			gone = append(gone, uid)
		}
	}
	s.cachedAtRunEnd = nil
	// Objects of a run that never completed its listing are not in left.
	for uid := range s.byUID {
		if !now[uid] {
			s.forgetLocked(uid)
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

// uidsOf returns the uids of cached objects.
func uidsOf(cached []any) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(cached))
	for _, item := range cached {
		if obj, ok := item.(source.Object); ok {
			uids[obj.GetUID()] = true
		}
	}
	return uids
}

// RequestPass requests a pass without an event. That pass handles the object even if its state is an echo of our own
// write.
func (s *Objects) RequestPass(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requestedPasses == nil {
		s.requestedPasses = map[types.NamespacedName]bool{}
	}
	s.requestedPasses[key] = true
}

// TakePassRequest reports whether a pass was requested since the last call.
func (s *Objects) TakePassRequest(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	woken := s.requestedPasses[key]
	delete(s.requestedPasses, key)
	return woken
}

// BeginPass returns the memory of an object for a pass. Every caller must call [Objects.EndPass] at the end of the
// pass, also after an error: until then, events of the object are held back.
func (s *Objects) BeginPass(uid types.UID) *ObjectState {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runningPasses[uid] = PendingEvent{}
	o := s.byUID[uid]
	if o == nil {
		o = &ObjectState{}
	}
	o.Changes.HandledState = s.handled[uid]
	return o
}

// NoteEvent drops our own write if the informer has delivered it or a newer state. The object may wait long for its
// next pass, and so may many others, each with a write in memory. A running pass does this itself.
func (s *Objects) NoteEvent(obj source.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, passing := s.runningPasses[obj.GetUID()]
	if o := s.byUID[obj.GetUID()]; o != nil && !passing {
		s.dropCachedWrite(o, obj)
	}
}

// CheckEcho is [Objects.NoteEvent] for events that would request a pass. It reports whether the pass is unnecessary, as
// [ObjectState.IsEcho] does. During a pass, it always returns true and keeps the event for [Objects.EndPass]: the pass
// may be about to receive the answer to the very write that caused the event.
func (s *Objects) CheckEcho(obj source.Object) (echo bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := obj.GetUID()
	if news, passing := s.runningPasses[uid]; passing {
		if news.Object == nil {
			news.Since = time.Now()
		}
		news.Object = obj
		s.runningPasses[uid] = news
		return true
	}
	o := s.byUID[uid]
	if o == nil {
		return false
	}
	echo = o.IsEcho(obj)
	s.dropCachedWrite(o, obj)
	return echo
}

// dropCachedWrite drops our own write if the cache has it, and the entry if nothing else is in it. The caller holds the
// lock, and no pass over the object is running.
func (s *Objects) dropCachedWrite(o *ObjectState, obj source.Object) {
	if o.dropCachedWrite(obj); o.IsEmpty() {
		delete(s.byUID, obj.GetUID())
	}
}

// EndPass ends a pass: it stores the memory unless it is empty. It returns the last event that arrived during the pass,
// or the zero value if there was none or it is an echo. The caller must request a pass for it.
func (s *Objects) EndPass(uid types.UID, o *ObjectState) (news PendingEvent) {
	// Compression is expensive and needs no lock: the pass still owns the object.
	o.lastWrite.packAnswer()
	o.decodedFrom, o.decoded = nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.runningPasses[uid]
	delete(s.runningPasses, uid)
	if news.Object != nil && o.IsEcho(news.Object) {
		news = PendingEvent{}
	}
	if o.Changes.HandledState == (changes.HandledState{}) {
		delete(s.handled, uid)
	} else {
		s.handled[uid] = o.Changes.HandledState
	}
	if o.IsEmpty() {
		delete(s.byUID, uid)
		return news
	}
	s.byUID[uid] = o
	return news
}

// ClearThrottle removes the delay after failures, so the next pass over the object may begin at once.
func (s *Objects) ClearThrottle(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.byUID[uid]; o != nil {
		o.Throttle.ResetFailures()
	}
}

// ForgetObject drops the memory of an object.
func (s *Objects) ForgetObject(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(uid)
}

// forgetLocked drops the memory of an object. The caller holds the lock. A running pass stores its memory again at its
// end, so its caller has to call [Objects.ForgetObject] then.
func (s *Objects) forgetLocked(uid types.UID) {
	delete(s.byUID, uid)
	delete(s.handled, uid)
}

// CountControls returns the numbers of paused objects, and of objects whose last change has failed permanently. It
// visits all handled objects, so it is for the collection of metrics.
func (s *Objects) CountControls() (paused, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, handled := range s.handled {
		if handled.IsPaused {
			paused++
		}
		if handled.HasFailed {
			failed++
		}
	}
	return paused, failed
}

// CountHandled returns the number of existing objects that were handled.
func (s *Objects) CountHandled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handled)
}

// Len returns the number of objects with memory, without those that were only handled.
func (s *Objects) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byUID)
}
