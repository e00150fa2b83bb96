package memory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// Unhandled records since when objects of a scope wait for the end of a change. Every event counts as a change until a
// pass has evaluated it. The zero value is empty. A nil Unhandled ignores all reports.
//
// Its times are nanoseconds since 1970: they need 8 bytes, and are comparable with the times of records.
type Unhandled struct {
	mu       sync.Mutex
	since    map[types.UID]int64
	peakSize int // highest size of the map since, whose memory never shrinks
	// Few objects have the following, so it is stored separately and the others do not need room for it: the objects of
	// running passes, with the time of the first event during the pass or zero; and the handlers that wait for their
	// next attempt.
	runningPasses   map[types.UID]int64
	waitingHandlers map[types.UID][]changes.WaitingHandler
}

// shrinkThreshold is the number of objects for which an empty map may keep memory. A Go map never shrinks, and it can
// become very large when an operator starts.
const shrinkThreshold = 1024

// NoteEvent records that the informer delivered a state of the object at this time. A pass will follow.
func (u *Unhandled) NoteEvent(uid types.UID, at time.Time) {
	if u == nil {
		return
	}
	since := at.UnixNano()
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, is := u.since[uid]; !is {
		u.addObject(uid, since)
	} else if news, passing := u.runningPasses[uid]; passing && news == 0 {
		u.runningPasses[uid] = since
	}
}

// BeginPass records that a pass over the object begins. The object is unknown here if the pass was requested without an
// event.
func (u *Unhandled) BeginPass(uid types.UID) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, is := u.since[uid]; !is {
		u.addObject(uid, time.Now().UnixNano())
	}
	if u.runningPasses == nil {
		u.runningPasses = map[types.UID]int64{}
	}
	u.runningPasses[uid] = 0
}

// KeepOpen records that a pass ended with an unfinished change: it returned an error, or some handlers are unfinished.
// Started is when the first of the handlers was selected, possibly by a former process; zero if unknown. Waiting are
// the handlers that wait for their next attempt.
func (u *Unhandled) KeepOpen(uid types.UID, started time.Time, waiting []changes.WaitingHandler) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	since, is := u.since[uid]
	if !is {
		return
	}
	if !started.IsZero() {
		// The records on the object survive a restart, so the change can be older than this process.
		u.since[uid] = min(since, started.UnixNano())
	}
	delete(u.runningPasses, uid)
	u.setWaiting(uid, waiting)
}

// FinishChange records that a pass finished all work for the object. It returns the time since the first event of the
// change.
func (u *Unhandled) FinishChange(uid types.UID) (took time.Duration) {
	if u == nil {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	since, is := u.since[uid]
	if !is {
		return 0
	}
	news := u.runningPasses[uid]
	u.removeObject(uid)
	// An event arrived during the pass. It starts a new wait, although it may be the echo of our own write: the next
	// pass decides.
	if news != 0 {
		u.addObject(uid, news)
	}
	return ageAt(time.Now(), since)
}

// ForgetObject removes a deleted object.
func (u *Unhandled) ForgetObject(uid types.UID) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.removeObject(uid)
}

// ForgetAll removes all objects. It is called when a run ends: without a controller, no object counts as late.
func (u *Unhandled) ForgetAll() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since, u.peakSize, u.runningPasses, u.waitingHandlers = nil, 0, nil, nil
}

// setWaiting replaces the waiting handlers of the object. The caller holds the lock.
func (u *Unhandled) setWaiting(uid types.UID, waiting []changes.WaitingHandler) {
	switch {
	case len(waiting) == 0:
		delete(u.waitingHandlers, uid)
		return
	case u.waitingHandlers == nil:
		u.waitingHandlers = map[types.UID][]changes.WaitingHandler{}
	}
	u.waitingHandlers[uid] = waiting
}

// addObject stores since when the object waits. The caller holds the lock.
func (u *Unhandled) addObject(uid types.UID, since int64) {
	if u.since == nil {
		u.since = map[types.UID]int64{}
	}
	u.since[uid] = since
	u.peakSize = max(u.peakSize, len(u.since))
}

// removeObject removes the object, and frees the map when it is empty and was large. The caller holds the lock.
func (u *Unhandled) removeObject(uid types.UID) {
	delete(u.since, uid)
	delete(u.runningPasses, uid)
	delete(u.waitingHandlers, uid)
	if len(u.since) == 0 && u.peakSize > shrinkThreshold {
		u.since, u.peakSize = nil, 0
	}
}

// ageAt returns the time since then. It is never negative, although the system clock can be set back.
func ageAt(now time.Time, since int64) time.Duration {
	return max(0, time.Duration(now.UnixNano()-since))
}

// UnfinishedWork counts the unfinished work of one scope.
type UnfinishedWork struct {
	// Changes is the number of objects with an unfinished change, and Oldest the age of the oldest one.
	Changes   int
	OldestAge time.Duration
	// WaitingByHandler is the number of objects for which a handler waits for its next attempt, by handler id.
	WaitingByHandler map[string]int
}

// CurrentUnfinished returns the unfinished work at this moment. It visits all objects, so it is for the collection of
// metrics.
func (u *Unhandled) CurrentUnfinished() (late UnfinishedWork) {
	if u == nil {
		return late
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	for _, since := range u.since {
		late.Changes++
		late.OldestAge = max(late.OldestAge, ageAt(now, since))
	}
	for uid, waiting := range u.waitingHandlers {
		_, passing := u.runningPasses[uid]
		for _, w := range waiting {
			if passing && !w.Until.After(now) {
				// The running pass calls the handler now, so it does not wait any more.
				continue
			}
			if late.WaitingByHandler == nil {
				late.WaitingByHandler = map[string]int{}
			}
			late.WaitingByHandler[w.Handler]++
		}
	}
	return late
}
