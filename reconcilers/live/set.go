package live

import (
	"cmp"
	"slices"
	"sync"
)

// Set is a set whose readers wait for changes with [Set.Current]. It is safe for concurrent use.
type Set[T cmp.Ordered] struct {
	mu      sync.Mutex
	members []T           // sorted; nil as long as the set is unknown
	changed chan struct{} // closed and replaced with every change
}

// NewSet returns a set of these members. Without members, the set is unknown until [Set.Replace].
func NewSet[T cmp.Ordered](members ...T) *Set[T] {
	return &Set[T]{members: slices.Clone(members), changed: make(chan struct{})}
}

// Current returns the members, sorted, and a channel that is closed with the next change. The members are nil while the
// set is unknown. The slice is shared: callers must not modify it.
func (s *Set[T]) Current() (members []T, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members, s.changed
}

// Replace replaces the members. Without members, the set is empty, unlike an unknown set.
func (s *Set[T]) Replace(members []T) {
	// The copy is never nil, so the set counts as known.
	members = append([]T{}, members...)
	slices.Sort(members)
	members = slices.Compact(members)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Readers are not notified of an equal set.
	if s.members != nil && slices.Equal(s.members, members) {
		return
	}
	s.members = members
	close(s.changed)
	s.changed = make(chan struct{})
}
