package source

import (
	"container/heap"
	"hash/maphash"
	"time"
)

// entry is a waiting request: it waits for its delay, then until the same request is released, then for its turn. There
// are as many as objects when these come in faster than they are handled, so an entry is no larger than it must be.
type entry struct {
	request Request
	at      time.Duration // end of the delay, on the clock of the queue; zero if it is over
	arrival uint64        // orders the requests that wait for a turn; zero unless it does
	// before and after are its neighbours in the line of its class.
	before, after *entry
	collided      *entry // the next one whose request has the same hash
	index         int32  // in the heap of delayed requests
	class         class
}

func (e *entry) due() bool { return e.at == 0 }

func (e *entry) listed() bool { return e.arrival != 0 }

// entries finds the entry of a request. It goes by hashes, as a map of requests would have each of them a second time.
type entries struct {
	hash   func(Request) uint64
	byHash map[uint64]*entry
	most   int // that there were since the map was made
}

// plenty is how many requests a map without any may have room for: it never gives room back, and there are very many
// when an operator starts.
const plenty = 1024

func newEntries() entries {
	seed := maphash.MakeSeed()
	return entries{hash: func(r Request) uint64 { return maphash.Comparable(seed, r) }}
}

func (s *entries) get(r Request) *entry {
	e := s.byHash[s.hash(r)]
	for e != nil && e.request != r {
		e = e.collided
	}
	return e
}

// add takes an entry whose request has none.
func (s *entries) add(e *entry) {
	if s.byHash == nil {
		s.byHash = map[uint64]*entry{}
	}
	hash := s.hash(e.request)
	e.collided = s.byHash[hash]
	s.byHash[hash] = e
	s.most = max(s.most, len(s.byHash))
}

func (s *entries) remove(e *entry) {
	hash := s.hash(e.request)
	switch first := s.byHash[hash]; {
	case first != e:
		for first.collided != e {
			first = first.collided
		}
		first.collided = e.collided
	case e.collided != nil:
		s.byHash[hash] = e.collided
	default:
		delete(s.byHash, hash)
	}
	if len(s.byHash) == 0 && s.most > plenty {
		s.clear()
	}
}

func (s *entries) clear() { s.byHash, s.most = nil, 0 }

// line is the entries of one class that wait for their turn, in the order of arrival.
type line struct {
	first, last *entry
	length      int
}

func (l *line) push(e *entry) {
	e.before, e.after = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.after = e
	}
	l.last = e
	l.length++
}

func (l *line) remove(e *entry) {
	if e.before == nil {
		l.first = e.after
	} else {
		e.before.after = e.after
	}
	if e.after == nil {
		l.last = e.before
	} else {
		e.after.before = e.before
	}
	e.before, e.after = nil, nil
	l.length--
}

// delayed is a heap by time.
type delayed []*entry

var _ heap.Interface = (*delayed)(nil)

func (d delayed) Len() int           { return len(d) }
func (d delayed) Less(i, j int) bool { return d[i].at < d[j].at }

// Swap implements heap.Interface.
func (d delayed) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = int32(i), int32(j)
}

// Push implements heap.Interface.
func (d *delayed) Push(x any) {
	e, _ := x.(*entry)
	e.index = int32(len(*d))
	*d = append(*d, e)
}

// Pop implements heap.Interface.
func (d *delayed) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return e
}
