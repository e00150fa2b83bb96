package source

import (
	"container/heap"
	"hash/maphash"
	"time"
)

// entry is a waiting request. It waits for the end of its delay, then for the release of the same request if that is
// being served, then for its turn. There can be as many entries as objects, so an entry must stay small.
type entry struct {
	request Request
	dueAt   time.Duration // end of the delay on the clock of the queue; zero if it is over
	arrival uint64        // position among the requests that wait for a turn; zero while it does not wait for one
	// previous and after are the neighbours in the line of its class.
	previous, next *entry
	nextInBucket   *entry // next entry whose request has the same hash
	index          int32  // position in the heap of delayed requests
	class          class
}

// isDue reports whether the delay is over.
func (e *entry) isDue() bool { return e.dueAt == 0 }

// isListed reports whether the entry waits for its turn, in the line of its class.
func (e *entry) isListed() bool { return e.arrival != 0 }

// entries finds the entry of a request by a hash. A map keyed by requests would store each request twice.
type entries struct {
	hash     func(Request) uint64
	byHash   map[uint64]*entry
	peakSize int // largest number of hashes since the map was created
}

// shrinkThreshold is the size from which an empty map is replaced. A Go map never shrinks, and when an operator starts,
// there is a request for every object.
const shrinkThreshold = 1024

// newEntries creates an index with a random seed, so that names cannot be chosen to collide.
func newEntries() entries {
	seed := maphash.MakeSeed()
	return entries{hash: func(r Request) uint64 { return maphash.Comparable(seed, r) }}
}

// findEntry returns the entry of the request, or nil.
func (s *entries) findEntry(r Request) *entry {
	e := s.byHash[s.hash(r)]
	for e != nil && e.request != r {
		e = e.nextInBucket
	}
	return e
}

// addEntry adds an entry. Its request must not have one.
func (s *entries) addEntry(e *entry) {
	if s.byHash == nil {
		s.byHash = map[uint64]*entry{}
	}
	hash := s.hash(e.request)
	e.nextInBucket = s.byHash[hash]
	s.byHash[hash] = e
	s.peakSize = max(s.peakSize, len(s.byHash))
}

// removeEntry removes an entry, which must be present.
func (s *entries) removeEntry(e *entry) {
	hash := s.hash(e.request)
	switch first := s.byHash[hash]; {
	case first != e:
		for first.nextInBucket != e {
			first = first.nextInBucket
		}
		first.nextInBucket = e.nextInBucket
	case e.nextInBucket != nil:
		s.byHash[hash] = e.nextInBucket
	default:
		delete(s.byHash, hash)
	}
	if len(s.byHash) == 0 && s.peakSize > shrinkThreshold {
		s.dropAllEntries()
	}
}

// dropAllEntries removes all entries, and frees the map.
func (s *entries) dropAllEntries() { s.byHash, s.peakSize = nil, 0 }

// line is a linked list of the entries of one class that wait for their turn, in the order of arrival. Removal from its
// middle takes constant time.
type line struct {
	first, last *entry
	length      int
}

// appendEntry appends an entry.
func (l *line) appendEntry(e *entry) {
	e.previous, e.next = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.length++
}

// unlinkEntry unlinks an entry, which must be in the line.
func (l *line) unlinkEntry(e *entry) {
	if e.previous == nil {
		l.first = e.next
	} else {
		e.previous.next = e.next
	}
	if e.next == nil {
		l.last = e.previous
	} else {
		e.next.previous = e.previous
	}
	e.previous, e.next = nil, nil
	l.length--
}

// delayedHeap is a heap of entries, ordered by the end of their delay. Each entry stores its position, so that it can
// be moved or removed.
type delayedHeap []*entry

var _ heap.Interface = (*delayedHeap)(nil)

func (d delayedHeap) Len() int           { return len(d) }
func (d delayedHeap) Less(i, j int) bool { return d[i].dueAt < d[j].dueAt }

// Swap implements heap.Interface.
func (d delayedHeap) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = int32(i), int32(j)
}

// Push implements heap.Interface.
func (d *delayedHeap) Push(x any) {
	e, _ := x.(*entry)
	e.index = int32(len(*d))
	*d = append(*d, e)
}

// Pop implements heap.Interface.
func (d *delayedHeap) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil // let the garbage collector free the entry
	*d = (*d)[:last]
	return e
}
