package storages

import (
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// Diffbase is the storage, kept apart if it is a user's own; of several storages, each is.
func Diffbase(of diffbase.Storage) diffbase.Storage {
	switch of := of.(type) {
	case nil, diffbase.Annotations, diffbase.Status, foreignDiffbase:
		return of
	case diffbase.Multi:
		apart := make(diffbase.Multi, len(of))
		for i, one := range of {
			apart[i] = Diffbase(one)
		}
		return apart
	default:
		return foreignDiffbase{of}
	}
}

// foreignDiffbase wraps a storage of the user's own code.
type foreignDiffbase struct{ of diffbase.Storage }

// Build gives an essence of its own.
func (f foreignDiffbase) Build(body map[string]any, extra []diff.Path) (essence diffbase.Essence, err error) {
	own := make([]diff.Path, 0, len(extra))
	for _, path := range extra {
		own = append(own, slices.Clone(path))
	}
	err = f.contain("Build", func() (err error) {
		essence, err = f.of.Build(copied(body), own)
		return err
	})
	return copied(essence), err
}

// Fetch gives an essence of its own.
func (f foreignDiffbase) Fetch(body map[string]any) (essence diffbase.Essence, err error) {
	err = f.contain("Fetch", func() (err error) {
		essence, err = f.of.Fetch(copied(body))
		return err
	})
	return copied(essence), err
}

// Store adds to the patch all that the storage does, or nothing.
func (f foreignDiffbase) Store(patch, body map[string]any, essence diffbase.Essence) error {
	return f.contain("Store", func() error {
		return patched(
			patch, func(patch map[string]any) error { return f.of.Store(patch, copied(body), copied(essence)) },
		)
	})
}

func (f foreignDiffbase) contain(method string, call func() error) error {
	return contain(f.of, method, call)
}

// contain says which storage it was.
func contain(storage any, method string, call func() error) error {
	var failed error
	panicked := panics.Contain(func() error { failed = call(); return nil })
	if panicked != nil {
		return fmt.Errorf("%s of the storage %T: %w", method, storage, panicked)
	}
	return failed
}

// patched lets something be added to a copy of the patch, and takes that over if it has worked.
func patched(patch map[string]any, add func(patch map[string]any) error) error {
	own := copied(patch)
	if err := add(own); err != nil {
		return err
	}
	replace(patch, own)
	return nil
}

func copied(tree map[string]any) map[string]any {
	own, _ := diff.Copy(tree).(map[string]any)
	return own
}
