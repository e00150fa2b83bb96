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
	// DefaultObjects is the number of objects with entries.
	DefaultObjects = 10_000
	// DefaultEntries is the number of entries of one object.
	DefaultEntries = 20
)

// mergeWindow is the number of recent entries that a new one is compared with. A cycle of up to that many entries, such
// as a retry with its event and write, takes constant space.
const mergeWindow = 6

// RetentionLimits limits the size of a journal. Zero values mean the defaults.
type RetentionLimits struct {
	// Objects is the number of objects. The object whose last entry is oldest is removed first.
	Objects int
	// Entries is the number of entries of one object. The oldest ones are removed first.
	Entries int
}

// Journal holds the records of one operator. Any goroutine may use it. A nil Journal records nothing.
type Journal struct {
	limits RetentionLimits

	mu    sync.Mutex
	pages map[Key]*page
	// ends has no entries. It closes the ring of all pages, which are ordered by their last entry: ends.next is the
	// oldest page, and ends.older the newest.
	ends page
	// entryCount counts all entries ever added.
	entryCount uint64
	live       LiveState
}

// Key identifies an object by kind and name. Objects with the same name share a history, even if their uids differ.
type Key struct {
	Kind   schema.GroupKind
	Object types.NamespacedName
}

// page holds the entries of one object.
type page struct {
	key           Key
	uid           types.UID
	entries       []Entry // the oldest first
	gone          bool
	existedBefore bool // the object existed before this process
	older, next   *page
	// lastEntryNumber is the value of Journal.changes at the last entry.
	lastEntryNumber uint64
}

// New creates an empty journal.
func New(limits RetentionLimits) *Journal {
	j := &Journal{pages: map[Key]*page{}}
	j.ends.older, j.ends.next = &j.ends, &j.ends
	j.SetLimits(limits)
	return j
}

// SetLimits changes the limits. Entries beyond them are removed when further entries come.
func (j *Journal) SetLimits(limits RetentionLimits) {
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

// objectLimit returns the limit of objects.
func (j *Journal) objectLimit() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.limits.Objects
}

// addEntry adds an entry to the page of the object.
func (j *Journal) addEntry(key Key, uid types.UID, e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.newestPage(key)
	// A new uid is a new object under the same name: its entries follow those of the former one.
	if uid != "" && p.uid != uid {
		p.uid, p.gone, p.existedBefore = uid, false, false
	}
	// Remember whether the object exists, because the entries of these events may be removed later.
	if e.Event != nil {
		p.gone = e.Event.Type == "DELETED"
		p.existedBefore = p.existedBefore || e.Event.Type == "LISTED"
	}
	j.entryCount++
	p.lastEntryNumber = j.entryCount
	p.addEntry(e, j.limits.Entries)
}

// VisitObjects calls visit for every object with entries, the newest first, with the number of its last entry. Numbers
// grow with each entry of any object. The journal is locked meanwhile, so visit must be quick. Each returns the number
// of the last entry; with a nil visit, it only does that.
func (j *Journal) VisitObjects(visit func(of Key, changed uint64)) (changes uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if visit == nil {
		return j.entryCount
	}
	for p := j.ends.older; p != &j.ends; p = p.older {
		visit(p.key, p.lastEntryNumber)
	}
	return j.entryCount
}

// EntriesOf returns a copy of the entries of one object, the oldest first, and its uid. It also returns whether the
// object is gone, and whether it existed before this process, so that there are no entries of its earlier history.
func (j *Journal) EntriesOf(of Key) (entries []Entry, uid types.UID, gone, listed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.pages[of]
	if p == nil {
		return []Entry{}, "", false, false
	}
	return slices.Clone(p.entries), p.uid, p.gone, p.existedBefore
}

// newestPage returns the page of the object, creates it if necessary, and makes it the newest. The caller holds the
// lock.
func (j *Journal) newestPage(key Key) *page {
	p := j.pages[key]
	if p == nil {
		j.makeRoom()
		p = &page{key: key}
		j.pages[key] = p
	} else {
		p.unlink()
	}
	// The newest page is next to the end of the ring.
	p.older, p.next = j.ends.older, &j.ends
	p.older.next, p.next.older = p, p
	return p
}

// makeRoom removes the objects with the oldest last entries, if the limit is reached. The caller holds the lock.
func (j *Journal) makeRoom() {
	for len(j.pages) >= j.limits.Objects {
		oldest := j.ends.next
		delete(j.pages, oldest.key)
		oldest.unlink()
	}
}

// unlink removes the page from the ring.
func (p *page) unlink() { p.older.next, p.next.older = p.next, p.older }

// addEntry appends the entry. If it repeats one of the last entries, it replaces that one and counts the repetition.
func (p *page) addEntry(e Entry, limit int) {
	// Search backwards: a repetition is usually close to the end.
	for i := len(p.entries) - 1; i >= max(0, len(p.entries)-mergeWindow); i-- {
		former := &p.entries[i]
		if !e.isRepetitionOf(former) {
			continue
		}
		// Times is zero for an entry that was not repeated yet.
		e.First, e.Times = former.First, max(former.Times, 1)+1
		if e.First == nil {
			first := former.At
			e.First = &first
		}
		// Move the repetition to the end, so that entries stay ordered by time.
		p.entries = append(slices.Delete(p.entries, i, i+1), e)
		return
	}
	// Remove more than one entry if the limit was lowered meanwhile.
	if len(p.entries) >= limit {
		p.entries = slices.Delete(p.entries, 0, len(p.entries)-limit+1)
	}
	p.entries = append(p.entries, e)
}

// currentTime returns the time in UTC. Microseconds are precise enough for users, and keep the JSON short.
func currentTime() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
