package journal

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The default limits of a journal.
const (
	// DefaultObjects is of how many objects there are entries.
	DefaultObjects = 10_000
	// DefaultEntries is how many entries there are of one object.
	DefaultEntries = 20
)

// nearby is how many of the last entries are compared with a new one: what goes on and on takes one place.
const nearby = 6

// Limits bound a journal. Zeros are the defaults.
type Limits struct {
	// Objects is of how many objects it knows: those that nothing has happened to for the longest time go.
	Objects int
	// Entries is how many it knows of one object: the oldest ones go.
	Entries int
}

// Journal is what one operator remembers. It may be used by any goroutine. Nil keeps nothing.
type Journal struct {
	limits Limits

	mu      sync.Mutex
	pages   map[Key]*page
	newest  *page // the pages are a ring, by the time of their last entry: the oldest one follows the newest
	changes uint64
	live    Live
}

// Key names an object.
type Key struct {
	Kind   schema.GroupKind
	Object types.NamespacedName
}

// page is what is known of one object.
type page struct {
	key         Key
	uid         types.UID
	entries     []Entry // the oldest first
	gone        bool
	listed      bool // it was there before this process
	older, next *page
	changed     uint64
}

// New makes an empty journal.
func New(limits Limits) *Journal {
	j := &Journal{pages: map[Key]*page{}}
	j.Limit(limits)
	return j
}

// Limit sets other limits: what is more than these goes with the next entries.
func (j *Journal) Limit(limits Limits) {
	if j == nil {
		return
	}
	if limits.Objects <= 0 {
		limits.Objects = DefaultObjects
	}
	if limits.Entries <= 0 {
		limits.Entries = DefaultEntries
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.limits = limits
}

// most is of how many objects it knows.
func (j *Journal) most() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.limits.Objects
}

// note adds an entry.
func (j *Journal) note(key Key, uid types.UID, e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.page(key)
	if uid != "" && p.uid != uid {
		p.uid, p.gone, p.listed = uid, false, false
	}
	if e.Event != nil {
		p.gone = e.Event.Type == "DELETED"
		p.listed = p.listed || e.Event.Type == "LISTED"
	}
	j.changes++
	p.changed = j.changes
	p.add(e, j.limits.Entries)
}

// Each calls visit with every object that there are entries of, the newest ones first, and with a number that grows
// with each entry. The journal waits for it. It gives the number of the last entry of all; a nil visit asks for that
// alone.
func (j *Journal) Each(visit func(of Key, changed uint64)) (changes uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if visit == nil {
		return j.changes
	}
	for i, p := 0, j.newest; i < len(j.pages); i, p = i+1, p.older {
		visit(p.key, p.changed)
	}
	return j.changes
}

// Entries returns the entries of one object, the oldest first. It also returns whether the object is gone, and whether
// it existed before this process, so that there are no entries of its earlier history.
func (j *Journal) Entries(of Key) (entries []Entry, gone, listed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.pages[of]
	if p == nil {
		return nil, false, false
	}
	return slices.Clone(p.entries), p.gone, p.listed
}

// page finds or makes the page, and puts it in front. The caller holds the lock.
func (j *Journal) page(key Key) *page {
	p, known := j.pages[key]
	switch {
	case known && p == j.newest:
		return p
	case known:
		j.unlink(p)
	default:
		j.makeRoom()
		p = &page{key: key}
		j.pages[key] = p
	}
	j.link(p)
	return p
}

// makeRoom forgets the objects that nothing has happened to for the longest time, if there are as many as there may be.
func (j *Journal) makeRoom() {
	for len(j.pages) >= j.limits.Objects {
		oldest := j.newest.next
		delete(j.pages, oldest.key)
		j.unlink(oldest)
	}
}

// link makes the page the newest one.
func (j *Journal) link(p *page) {
	if j.newest == nil {
		p.older, p.next = p, p
	} else {
		p.older, p.next = j.newest, j.newest.next
		p.next.older, p.older.next = p, p
	}
	j.newest = p
}

func (j *Journal) unlink(p *page) {
	if p.next == p {
		j.newest = nil
		return
	}
	p.older.next, p.next.older = p.next, p.older
	if j.newest == p {
		j.newest = p.older
	}
}

// add appends the entry; one that says the same as one of the last takes its place, and counts it.
func (p *page) add(e Entry, limit int) {
	for i := len(p.entries) - 1; i >= max(0, len(p.entries)-nearby); i-- {
		former := &p.entries[i]
		if !e.repeats(former) {
			continue
		}
		e.First, e.Times = former.First, max(former.Times, 1)+1
		if e.First == nil {
			first := former.At
			e.First = &first
		}
		p.entries = append(slices.Delete(p.entries, i, i+1), e)
		return
	}
	if len(p.entries) >= limit {
		p.entries = slices.Delete(p.entries, 0, len(p.entries)-limit+1)
	}
	p.entries = append(p.entries, e)
}

// now is as precise as people can use it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
