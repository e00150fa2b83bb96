package namespaces

import (
	"slices"
	"sync"
)

// Everywhere stands for the whole cluster in a [LiveNamespaces].
const Everywhere = ""

// LiveNamespaces is the current set of served namespaces. Its users wait for changes with [LiveNamespaces.Current]. It
// is safe for concurrent use.
type LiveNamespaces struct {
	mu      sync.Mutex
	names   []string      // sorted; nil as long as the set is unknown
	changed chan struct{} // closed and replaced with every change
}

// NewLive returns a set of these namespaces. Without names, the set is unknown until [LiveNamespaces.SetNames].
func NewLive(names ...string) *LiveNamespaces {
	return &LiveNamespaces{names: slices.Clone(names), changed: make(chan struct{})}
}

// Current returns the namespaces, sorted, and a channel that is closed with the next change. The names are nil while
// the set is unknown, and only [Everywhere] for the whole cluster. The slice is shared: callers must not modify it.
func (l *LiveNamespaces) Current() (names []string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names, l.changed
}

// SetNames replaces the namespaces. An empty list means that no namespace is served, unlike an unknown set.
func (l *LiveNamespaces) SetNames(names []string) {
	// The copy is never nil, so the set counts as known.
	names = append([]string{}, names...)
	slices.Sort(names)
	names = slices.Compact(names)
	l.mu.Lock()
	defer l.mu.Unlock()
	// Waiters are not notified of an equal set.
	if l.names != nil && slices.Equal(l.names, names) {
		return
	}
	l.names = names
	close(l.changed)
	l.changed = make(chan struct{})
}
