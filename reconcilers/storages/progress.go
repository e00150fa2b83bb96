package storages

import (
	"maps"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Progress is the storage, kept apart if it is a user's own; of several storages, each is.
func Progress(of progress.Storage) progress.Storage {
	switch of := of.(type) {
	case nil, progress.Annotations, progress.Status, progress.Smart, foreignProgress:
		return of
	case progress.Multi:
		apart := make(progress.Multi, len(of))
		for i, one := range of {
			apart[i] = Progress(one)
		}
		return apart
	default:
		return foreignProgress{of}
	}
}

// foreignProgress is a storage of the user's. Panics of methods that return no error go on.
type foreignProgress struct{ of progress.Storage }

// Fetch gives a record of its own.
func (f foreignProgress) Fetch(body map[string]any, id string) (record *progress.Record, err error) {
	err = contain(f.of, "Fetch", func() (err error) {
		record, err = f.of.Fetch(copied(body), id)
		return err
	})
	if record == nil || err != nil {
		return nil, err
	}
	own := record.Clone()
	return &own, nil
}

// Clear gives an essence of its own.
func (f foreignProgress) Clear(essence map[string]any) map[string]any {
	return copied(f.of.Clear(copied(essence)))
}

// Store adds to the patch all that the storage does, or nothing.
func (f foreignProgress) Store(patch, body map[string]any, id string, record progress.Record) error {
	return contain(f.of, "Store", func() error {
		return patched(
			patch, func(patch map[string]any) error { return f.of.Store(patch, copied(body), id, record.Clone()) },
		)
	})
}

// Flush is that of a storage that has it.
func (f foreignProgress) Flush() error {
	return contain(f.of, "Flush", func() error { return progress.Flush(f.of) })
}

// Purge adds to the patch all that the storage does, or nothing.
func (f foreignProgress) Purge(patch, body map[string]any, id string) {
	own := copied(patch)
	f.of.Purge(own, copied(body), id)
	replace(patch, own)
}

// Touch adds to the patch all that the storage does, or nothing.
func (f foreignProgress) Touch(patch, body map[string]any, value *string) {
	own := copied(patch)
	if value != nil {
		value = ptr.To(*value)
	}
	f.of.Touch(own, copied(body), value)
	replace(patch, own)
}

// replace takes over what a storage has made of its copy.
func replace(patch, own map[string]any) {
	own = copied(own)
	clear(patch)
	maps.Copy(patch, own)
}
