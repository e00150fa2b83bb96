package storages

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

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
