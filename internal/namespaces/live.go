package namespaces

import (
	"cmp"
	"slices"
	"sync"
)

// LiveSet is a set whose readers wait for changes with [LiveSet.Current]. It is safe for concurrent use.
type LiveSet[T cmp.Ordered] struct {
	mu      sync.Mutex
	members []T           // sorted; nil as long as the set is unknown
	changed chan struct{} // closed and replaced with every change
}

// NewLiveSet returns a set of these members. Without members, the set is unknown until [LiveSet.Replace].
func NewLiveSet[T cmp.Ordered](members ...T) *LiveSet[T] {
	return &LiveSet[T]{members: slices.Clone(members), changed: make(chan struct{})}
}

// Current returns the members, sorted, and a channel that is closed with the next change. The members are nil while the
// set is unknown. The slice is shared: callers must not modify it.
func (s *LiveSet[T]) Current() (members []T, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members, s.changed
}

// Replace replaces the members. Without members, the set is empty, unlike an unknown set.
func (s *LiveSet[T]) Replace(members []T) {
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

// Everywhere stands for the whole cluster in a [LiveNamespaces].
const Everywhere = ""

// LiveNamespaces is the current set of served namespaces: only [Everywhere] for the whole cluster.
type LiveNamespaces = LiveSet[string]

// NewLive returns a set of these namespaces. Without names, the set is unknown until its first change.
func NewLive(names ...string) *LiveNamespaces { return NewLiveSet(names...) }
