package indexes

import (
	"math"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ObjectIndex maps keys to values. Each value comes from an object, its origin. An Index can be used concurrently.
type ObjectIndex struct {
	mu       sync.RWMutex
	byKey    map[any]*bucket
	byOrigin map[types.UID][]position
	watchers watchers
}

// bucket holds all values under one key.
type bucket struct {
	key      any // to delete the bucket when it is empty
	values   []any
	origins  []types.UID // of the values, in the same order
	snapshot []any       // a copy of the values for callers, never modified; nil until the next Get
}

// position locates one value of an object.
type position struct {
	bucket *bucket
	at     int
}

// New returns an empty index.
func New() *ObjectIndex {
	return &ObjectIndex{byKey: map[any]*bucket{}, byOrigin: map[types.UID][]position{}}
}

// Get returns the values of a key, in no particular order; nil if there are none. The returned slice is shared: callers
// must not modify it, and later changes of the index do not affect it.
func (i *ObjectIndex) Get(key any) []any {
	// With a snapshot, a read lock is enough: readers do not block each other.
	i.mu.RLock()
	b := i.byKey[key]
	if b == nil || b.snapshot != nil {
		defer i.mu.RUnlock()
		if b == nil {
			return nil
		}
		return b.snapshot
	}
	i.mu.RUnlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if b = i.byKey[key]; b == nil { // the bucket can be gone: the lock was released in between
		return nil
	}
	if b.snapshot == nil {
		b.snapshot = append(make([]any, 0, len(b.values)), b.values...)
	}
	return b.snapshot
}

// Count returns the number of values of a key.
func (i *ObjectIndex) Count(key any) int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if b := i.byKey[key]; b != nil {
		return len(b.values)
	}
	return 0
}

// Len returns the number of keys.
func (i *ObjectIndex) Len() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.byKey)
}

// Objects returns the number of objects that have values.
func (i *ObjectIndex) Objects() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.byOrigin)
}

// Keys returns all keys, in no particular order.
func (i *ObjectIndex) Keys() []any {
	i.mu.RLock()
	defer i.mu.RUnlock()
	keys := make([]any, 0, len(i.byKey))
	for key := range i.byKey {
		keys = append(keys, key)
	}
	return keys
}

// ReplaceEntries makes the entries the only ones of the object; nil removes the object. It calls the watchers without
// the lock, as they can read the index.
func (i *ObjectIndex) ReplaceEntries(origin types.UID, entries map[any]any) {
	if i.replaceEntries(origin, entries) {
		i.watchers.notifyAll()
	}
}

// replaceEntries reports whether any entry has changed. Equal values count as unchanged only if there are watchers.
func (i *ObjectIndex) replaceEntries(origin types.UID, entries map[any]any) (changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	isWatched := i.watchers.hasAny() // comparing values is slow, and only needed for watchers
	var kept []position
	// Update or remove the present entries of the object.
	for _, p := range i.byOrigin[origin] {
		value, wanted := entries[p.bucket.key]
		if !wanted {
			i.dropEntry(p)
			changed = true
			continue
		}
		changed = changed || isWatched && !reflect.DeepEqual(p.bucket.values[p.at], value)
		// A snapshot of the bucket is outdated now.
		p.bucket.values[p.at], p.bucket.snapshot = value, nil
		kept = append(kept, p)
	}
	// Add the entries with new keys.
	for key, value := range entries {
		if hasKey(kept, key) || isNaN(key) {
			continue
		}
		kept = append(kept, i.addEntry(origin, key, value))
		changed = true
	}
	// An object without entries does not take memory.
	if len(kept) == 0 {
		delete(i.byOrigin, origin)
		return changed
	}
	i.byOrigin[origin] = kept
	return changed
}

// isNaN reports whether the key is NaN: as it does not equal itself, the map could neither find nor remove it.
func isNaN(key any) bool {
	switch number := key.(type) {
	case float64:
		return math.IsNaN(number)
	case float32:
		return math.IsNaN(float64(number))
	default:
		return false
	}
}

// hasKey reports whether any of the positions has the key.
func hasKey(positions []position, key any) bool {
	for _, p := range positions {
		if p.bucket.key == key {
			return true
		}
	}
	return false
}

// addEntry appends a value to the bucket of its key.
func (i *ObjectIndex) addEntry(origin types.UID, key, value any) position {
	b := i.byKey[key]
	if b == nil {
		b = &bucket{key: key}
		i.byKey[key] = b
	}
	b.values, b.origins, b.snapshot = append(b.values, value), append(b.origins, origin), nil
	return position{b, len(b.values) - 1}
}

// dropEntry removes a value without shifting the others: it moves the last value of the bucket to the free position.
func (i *ObjectIndex) dropEntry(p position) {
	b, last := p.bucket, len(p.bucket.values)-1
	if p.at != last {
		moved := b.origins[last]
		b.values[p.at], b.origins[p.at] = b.values[last], moved
		// The origin of the moved value still refers to the old position.
		for n, other := range i.byOrigin[moved] {
			if other.bucket == b {
				i.byOrigin[moved][n].at = p.at
			}
		}
	}
	b.values[last] = nil // for the garbage collector
	b.values, b.origins, b.snapshot = b.values[:last], b.origins[:last], nil
	if last == 0 {
		delete(i.byKey, b.key)
	}
}
