package storages

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// isolateEach isolates each of several storages. The result has the same type as the argument.
func isolateEach[M ~[]S, S any](several M, apart func(S) S) M {
	all := make(M, len(several))
	for i, one := range several {
		all[i] = apart(one)
	}
	return all
}

// containPanic turns a panic of a method into an error that names the storage. Errors that the method returns stay
// unchanged.
func containPanic(storage any, method string, call func() error) error {
	err := panics.Contain(call)
	if panics.StackFields(err) != nil {
		return fmt.Errorf("%s of the storage %T: %w", method, storage, err)
	}
	return err
}

// applyToCopies calls a method with copies of the patch and of the body. Only if the method succeeds, its changes are
// applied to the patch, so a failed method never leaves a partial write.
func applyToCopies(patch, body map[string]any, add func(patch, body map[string]any) error) error {
	own := copyTree(patch)
	if err := add(own, copyTree(body)); err != nil {
		return err
	}
	// The method may have kept references to values of its copy, and could modify them later.
	own = copyTree(own)
	// Callers hold this map, so it is changed in place.
	clear(patch)
	maps.Copy(patch, own)
	return nil
}

// copyTree returns a deep copy, and nil for nil.
func copyTree(tree map[string]any) map[string]any {
	own, _ := diff.DeepCopy(tree).(map[string]any)
	return own
}

// IsolateDiffbase isolates the storage from the engine if it is the user's own. It isolates each member of a
// [diffbase.Multi].
func IsolateDiffbase(of diffbase.Storage) diffbase.Storage {
	switch of := of.(type) {
	case nil, diffbase.Annotations, diffbase.Status, foreignDiffbase:
		return of
	case diffbase.Multi:
		return isolateEach(of, IsolateDiffbase)
	default:
		return foreignDiffbase{of}
	}
}

// foreignDiffbase isolates a storage of the user.
type foreignDiffbase struct{ inner diffbase.Storage }

// Build returns a copy of the essence. The storage gets copies of the body and of the extra paths.
func (f foreignDiffbase) Build(body map[string]any, extra []diff.Path) (essence diffbase.Essence, err error) {
	own := slices.Clone(extra)
	for i, path := range own {
		own[i] = slices.Clone(path)
	}
	err = containPanic(f.inner, "Build", func() (err error) {
		essence, err = f.inner.Build(copyTree(body), own)
		return err
	})
	return copyTree(essence), err
}

// Fetch returns a copy of the stored essence.
func (f foreignDiffbase) Fetch(body map[string]any) (essence diffbase.Essence, err error) {
	err = containPanic(f.inner, "Fetch", func() (err error) {
		essence, err = f.inner.Fetch(copyTree(body))
		return err
	})
	return copyTree(essence), err
}

// Store adds everything that the storage writes to the patch, or nothing after an error.
func (f foreignDiffbase) Store(patch, body map[string]any, essence diffbase.Essence) error {
	return containPanic(f.inner, "Store", func() error {
		return applyToCopies(patch, body, func(patch, body map[string]any) error {
			return f.inner.Store(patch, body, copyTree(essence))
		})
	})
}

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

// probeObject returns a body that represents every object: the fields of the memory are the same for all objects.
func probeObject() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "any", "uid": "any"}}
}

// ProbeDiffbase adds to the patch the fields that the storage writes for an empty essence. These are the places that no
// handler and no other operator may write to.
func ProbeDiffbase(patch map[string]any, kept diffbase.Storage) error {
	return kept.Store(patch, probeObject(), diffbase.Essence{})
}

// ProbeProgress adds to the patch the fields that the storage writes for a record of the handler. The record contains
// the id, so it differs from those of all other handlers. A storage that keeps records outside of the patch must not
// keep this one, so it is removed again.
func ProbeProgress(patch map[string]any, kept progress.Storage, id string) error {
	purpose := id
	if err := kept.Store(patch, probeObject(), id, progress.Record{Purpose: &purpose}); err != nil {
		return fmt.Errorf("storing a record of handler %q: %w", id, err)
	}
	// Purge does not return an error, so a panic of a user's storage would not be contained.
	err := panics.Contain(func() error {
		kept.Purge(map[string]any{}, probeObject(), id)
		return progress.Flush(kept)
	})
	if err != nil {
		return fmt.Errorf("removing a record of handler %q: %w", id, err)
	}
	return nil
}
