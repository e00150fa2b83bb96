package indexes

import (
	"slices"
	"sync"
)

// watchers are the functions that are called after changes of one index.
type watchers struct {
	mu        sync.Mutex // pointers, as functions cannot be compared; the slice is copied on write
	callbacks []*func()
}

// Notify calls the function after each change of the index, on the goroutine that made the change, until stop is
// called. Replacing entries by equal ones does not count as a change. The function must not block.
func (i *ObjectIndex) Notify(changed func()) (stop func()) {
	w := &i.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	own := &changed
	w.callbacks = append(slices.Clip(w.callbacks), own)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.callbacks = slices.DeleteFunc(slices.Clone(w.callbacks), func(other *func()) bool { return other == own })
	}
}

// hasAny reports whether there are watchers.
func (w *watchers) hasAny() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.callbacks) > 0
}

// notifyAll calls all watchers, without the lock: a watcher can call stop.
func (w *watchers) notifyAll() {
	w.mu.Lock()
	all := w.callbacks
	w.mu.Unlock()
	for _, changed := range all {
		(*changed)()
	}
}
