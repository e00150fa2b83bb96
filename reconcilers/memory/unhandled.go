package memory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// Unhandled knows since when objects of a scope wait for the end of a change. What the informer brings may be a change
// until a pass has looked at it. The zero value knows of none; nil takes all reports, and keeps none.
//
// Its times are nanoseconds since 1970: they take little room, and compare with those of records.
type Unhandled struct {
	mu    sync.Mutex
	since map[types.UID]int64
	most  int // that there were since the map was made
	// What few objects have is apart, so that the others have no room for it: those that a pass is looking at now, with
	// the time when something came meanwhile, zero if nothing did; and handlers that wait for their next attempt.
	passing map[types.UID]int64
	waiting map[types.UID][]changes.Waiting
}

// plenty is how many objects a map without any may have room for: it never gives room back, and there are very many
// when an operator starts.
const plenty = 1024

// Seen notes that the informer has brought a state of the object, and when: a pass will follow.
func (u *Unhandled) Seen(uid types.UID, at time.Time) {
	if u == nil {
		return
	}
	since := at.UnixNano()
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, is := u.since[uid]; !is {
		u.keep(uid, since)
	} else if news, passing := u.passing[uid]; passing && news == 0 {
		u.passing[uid] = since
	}
}

// Begin notes that a pass looks at the object now.
func (u *Unhandled) Begin(uid types.UID) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, is := u.since[uid]; !is {
		u.keep(uid, time.Now().UnixNano())
	}
	if u.passing == nil {
		u.passing = map[types.UID]int64{}
	}
	u.passing[uid] = 0
}

// Leave notes that a pass has ended with a change that is to be gone on with: after the error of a former one, or with
// handlers that are not finished. Those of them that wait are given, and when the first of the handlers was selected,
// zero if that is not known: a former process may have seen the change.
func (u *Unhandled) Leave(uid types.UID, started time.Time, waiting []changes.Waiting) {
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
		u.since[uid] = min(since, started.UnixNano())
	}
	delete(u.passing, uid)
	u.wait(uid, waiting)
}

// End notes that a pass has ended with nothing left to be done, and tells how long that has taken from the first word
// of it.
func (u *Unhandled) End(uid types.UID) (took time.Duration) {
	if u == nil {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	since, is := u.since[uid]
	if !is {
		return 0
	}
	news := u.passing[uid]
	u.drop(uid)
	if news != 0 { // it may be our own write
		u.keep(uid, news)
	}
	return age(time.Now(), since)
}

// Forget is for an object that is gone.
func (u *Unhandled) Forget(uid types.UID) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(uid)
}

// Clear forgets all: nobody handles the objects, so nobody is late.
func (u *Unhandled) Clear() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since, u.most, u.passing, u.waiting = nil, 0, nil, nil
}

func (u *Unhandled) wait(uid types.UID, waiting []changes.Waiting) {
	switch {
	case len(waiting) == 0:
		delete(u.waiting, uid)
		return
	case u.waiting == nil:
		u.waiting = map[types.UID][]changes.Waiting{}
	}
	u.waiting[uid] = waiting
}

func (u *Unhandled) keep(uid types.UID, since int64) {
	if u.since == nil {
		u.since = map[types.UID]int64{}
	}
	u.since[uid] = since
	u.most = max(u.most, len(u.since))
}

func (u *Unhandled) drop(uid types.UID) {
	delete(u.since, uid)
	delete(u.passing, uid)
	delete(u.waiting, uid)
	if len(u.since) == 0 && u.most > plenty {
		u.since, u.most = nil, 0
	}
}

// age is never negative: clocks are corrected.
func age(now time.Time, since int64) time.Duration {
	return max(0, time.Duration(now.UnixNano()-since))
}

// Late is what waits in one scope.
type Late struct {
	// Changes are the objects with a change that is not handled yet, Oldest the age of the oldest of these.
	Changes int
	Oldest  time.Duration
	// Waiting are the handlers that wait for their next attempt, by their ids.
	Waiting map[string]int
}

// Late is what waits now.
func (u *Unhandled) Late() (late Late) {
	if u == nil {
		return late
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	for _, since := range u.since {
		late.Changes++
		late.Oldest = max(late.Oldest, age(now, since))
	}
	for uid, waiting := range u.waiting {
		_, passing := u.passing[uid]
		for _, w := range waiting {
			if passing && !w.Until.After(now) {
				continue // it is called
			}
			if late.Waiting == nil {
				late.Waiting = map[string]int{}
			}
			late.Waiting[w.Handler]++
		}
	}
	return late
}
