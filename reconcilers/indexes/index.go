package indexes

import (
	"math"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Index maps keys to values, each of which comes from an object: its origin. It may be used concurrently.
type Index struct {
	mu       sync.RWMutex
	byKey    map[any]*bucket
	byOrigin map[types.UID][]position
	watchers watchers
}

// bucket holds all values under one key.
type bucket struct {
	key      any
	values   []any
	origins  []types.UID
	snapshot []any // copy of the values for callers, never modified; nil until Get makes it
}

// position locates one value of an object.
type position struct {
	bucket *bucket
	at     int
}

// New makes an empty index.
func New() *Index {
	return &Index{byKey: map[any]*bucket{}, byOrigin: map[types.UID][]position{}}
}

// Get gives the values under a key, in no order; nil if there is none. The index does not change a list that it has
// returned. The list is shared: callers must not modify it.
func (i *Index) Get(key any) []any {
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
	if b = i.byKey[key]; b == nil {
		return nil
	}
	if b.snapshot == nil {
		b.snapshot = append(make([]any, 0, len(b.values)), b.values...)
	}
	return b.snapshot
}

// Count is the number of values under the key.
func (i *Index) Count(key any) int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if b := i.byKey[key]; b != nil {
		return len(b.values)
	}
	return 0
}

// Len is the number of keys.
func (i *Index) Len() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.byKey)
}

// Objects is the number of objects with values.
func (i *Index) Objects() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.byOrigin)
}

// Keys gives all keys, in no order.
func (i *Index) Keys() []any {
	i.mu.RLock()
	defer i.mu.RUnlock()
	keys := make([]any, 0, len(i.byKey))
	for key := range i.byKey {
		keys = append(keys, key)
	}
	return keys
}

// Replace makes these entries the only ones of the object.
func (i *Index) Replace(origin types.UID, entries map[any]any) {
	if i.replace(origin, entries) {
		i.watchers.call()
	}
}

// replace reports whether anything has changed, if there are watchers.
func (i *Index) replace(origin types.UID, entries map[any]any) (changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	isWatched := i.watchers.any()
	var kept []position
	for _, p := range i.byOrigin[origin] {
		value, wanted := entries[p.bucket.key]
		if !wanted {
			i.drop(p)
			changed = true
			continue
		}
		changed = changed || isWatched && !reflect.DeepEqual(p.bucket.values[p.at], value)
		p.bucket.values[p.at], p.bucket.snapshot = value, nil
		kept = append(kept, p)
	}
	for key, value := range entries {
		if hasKey(kept, key) || isNaN(key) {
			continue
		}
		kept = append(kept, i.add(origin, key, value))
		changed = true
	}
	if len(kept) == 0 {
		delete(i.byOrigin, origin)
		return changed
	}
	i.byOrigin[origin] = kept
	return changed
}

// Remove removes all values of the object.
func (i *Index) Remove(origin types.UID) {
	if i.remove(origin) {
		i.watchers.call()
	}
}

func (i *Index) remove(origin types.UID) (changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.byOrigin[origin] {
		i.drop(p)
		changed = true
	}
	delete(i.byOrigin, origin)
	return changed
}

// isNaN tells whether the key is unequal to itself: the map could neither find nor remove it.
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

func hasKey(positions []position, key any) bool {
	for _, p := range positions {
		if p.bucket.key == key {
			return true
		}
	}
	return false
}

func (i *Index) add(origin types.UID, key, value any) position {
	b := i.byKey[key]
	if b == nil {
		b = &bucket{key: key}
		i.byKey[key] = b
	}
	b.values, b.origins, b.snapshot = append(b.values, value), append(b.origins, origin), nil
	return position{b, len(b.values) - 1}
}

// drop removes a value, and moves the last value of the bucket to its position.
func (i *Index) drop(p position) {
	b, last := p.bucket, len(p.bucket.values)-1
	if p.at != last {
		moved := b.origins[last]
		b.values[p.at], b.origins[p.at] = b.values[last], moved
		for n, other := range i.byOrigin[moved] {
			if other.bucket == b {
				i.byOrigin[moved][n].at = p.at
			}
		}
	}
	b.values[last] = nil
	b.values, b.origins, b.snapshot = b.values[:last], b.origins[:last], nil
	if last == 0 {
		delete(i.byKey, b.key)
	}
}
