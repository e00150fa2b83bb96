package storages

import (
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// IsolateProgress isolates the storage from the engine if it is the user's own. It isolates each member of a
// [progress.Multi].
func IsolateProgress(of progress.Storage) progress.Storage {
	switch of := of.(type) {
	case nil, progress.Annotations, progress.Status, progress.Smart, foreignProgress:
		return of
	case progress.Multi:
		return isolateEach(of, IsolateProgress)
	default:
		return foreignProgress{of}
	}
}

// foreignProgress isolates a storage of the user. Methods without an error cannot report a panic: their callers have a
// guard.
type foreignProgress struct{ inner progress.Storage }

// Fetch returns a copy of the record.
func (f foreignProgress) Fetch(body map[string]any, id string) (record *progress.Record, err error) {
	err = containPanic(f.inner, "Fetch", func() (err error) {
		record, err = f.inner.Fetch(copyTree(body), id)
		return err
	})
	if record == nil || err != nil {
		return nil, err
	}
	own := record.Clone()
	return &own, nil
}

// Clear returns a copy of the essence without the storage's own fields.
func (f foreignProgress) Clear(essence map[string]any) map[string]any {
	return copyTree(f.inner.Clear(copyTree(essence)))
}

// Store adds everything that the storage writes to the patch, or nothing after an error.
func (f foreignProgress) Store(patch, body map[string]any, id string, record progress.Record) error {
	return containPanic(f.inner, "Store", func() error {
		return applyToCopies(patch, body, func(patch, body map[string]any) error {
			return f.inner.Store(patch, body, id, record.Clone())
		})
	})
}

// Flush calls Flush of the storage, if it has that method.
func (f foreignProgress) Flush() error {
	return containPanic(f.inner, "Flush", func() error { return progress.Flush(f.inner) })
}

// Purge adds everything that the storage writes to the patch.
func (f foreignProgress) Purge(patch, body map[string]any, id string) {
	_ = applyToCopies(patch, body, func(patch,
		body map[string]any) error {
		f.inner.Purge(patch, body, id)
		return nil
	})
}

// Touch adds everything that the storage writes to the patch. The storage gets a copy of the value.
func (f foreignProgress) Touch(patch, body map[string]any, value *string) {
	if value != nil {
		value = ptr.To(*value)
	}
	_ = applyToCopies(patch, body, func(patch, body map[string]any) error {
		f.inner.Touch(patch, body, value)
		return nil
	})
}
