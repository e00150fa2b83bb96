package storages

import (
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Progress returns the storage, kept apart from the engine if it is a user's own. Each of several storages is.
func Progress(of progress.Storage) progress.Storage {
	switch of := of.(type) {
	case nil, progress.Annotations, progress.Status, progress.Smart, foreignProgress:
		return of
	case progress.Multi:
		return each(of, Progress)
	default:
		return foreignProgress{of}
	}
}

// foreignProgress is a storage of the user's. The callers of its methods without an error guard against panics.
type foreignProgress struct{ of progress.Storage }

// Fetch returns a copy of the record.
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

// Clear returns a copy of the essence.
func (f foreignProgress) Clear(essence map[string]any) map[string]any {
	return copied(f.of.Clear(copied(essence)))
}

// Store adds to the patch everything that the storage writes, or nothing.
func (f foreignProgress) Store(patch, body map[string]any, id string, record progress.Record) error {
	return contain(f.of, "Store", func() error {
		return patched(patch, body, func(patch, body map[string]any) error {
			return f.of.Store(patch, body, id, record.Clone())
		})
	})
}

// Flush calls the method of a storage that has it.
func (f foreignProgress) Flush() error {
	return contain(f.of, "Flush", func() error { return progress.Flush(f.of) })
}

// Purge adds to the patch everything that the storage writes, or nothing.
func (f foreignProgress) Purge(patch, body map[string]any, id string) {
	_ = patched(patch, body, func(patch, body map[string]any) error { f.of.Purge(patch, body, id); return nil })
}

// Touch adds to the patch everything that the storage writes, or nothing.
func (f foreignProgress) Touch(patch, body map[string]any, value *string) {
	if value != nil {
		value = ptr.To(*value)
	}
	_ = patched(patch, body, func(patch, body map[string]any) error { f.of.Touch(patch, body, value); return nil })
}
