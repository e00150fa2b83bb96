package persistence

import (
	"maps"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// RecordPlaces are where a storage keeps the record of a handler, as JSON pointers, sorted.
func RecordPlaces(kept progress.Storage, id string) ([]string, error) {
	patch, err := recordPatch(kept, id)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(storage.Leaves(patch))), nil
}

// SharePlace tells whether the records of two ids are at one place. A storage that fails shares none: RecordPlaces
// tells of its error.
func SharePlace(kept progress.Storage, a, b string) bool {
	first, err := recordPatch(kept, a)
	if err != nil {
		return false
	}
	second, err := recordPatch(kept, b)
	if err != nil {
		return false
	}
	places := storage.Leaves(first)
	for place, value := range storage.Leaves(second) {
		if held, both := places[place]; both && !diff.Equal(held, value) {
			return true
		}
	}
	return false
}

// recordPatch gives what a storage writes for a record of the handler.
func recordPatch(kept progress.Storage, id string) (map[string]any, error) {
	patch := map[string]any{}
	if err := storages.ProbeProgress(patch, kept, id); err != nil {
		return nil, err
	}
	return patch, nil
}
