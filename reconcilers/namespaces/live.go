package namespaces

import (
	"slices"
	"sync"
)

// Everywhere is the name of the whole cluster in a [Live].
const Everywhere = ""

// Live is the set of namespaces that are served at present, for all who depend on it. It may be used concurrently.
type Live struct {
	mu      sync.Mutex
	names   []string
	changed chan struct{}
}

// NewLive makes a set of these namespaces, or, without any, one that is not known yet.
func NewLive(names ...string) *Live {
	return &Live{names: slices.Clone(names), changed: make(chan struct{})}
}

// Current gives the namespaces, sorted, and what is closed when they have changed. They are nil as long as they are not
// known, and [Everywhere] alone for the whole cluster. The list is shared: callers must not modify it.
func (l *Live) Current() (names []string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names, l.changed
}

// Set replaces the namespaces; none are known to be none.
func (l *Live) Set(names []string) {
	names = append([]string{}, names...)
	slices.Sort(names)
	names = slices.Compact(names)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names != nil && slices.Equal(l.names, names) {
		return
	}
	l.names = names
	close(l.changed)
	l.changed = make(chan struct{})
}
