package storages

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

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
