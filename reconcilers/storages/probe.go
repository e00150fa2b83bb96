package storages

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// probeObject stands for every object: all objects have their memory at the same places.
func probeObject() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "any", "uid": "any"}}
}

// ProbeDiffbase adds to the patch what the storage writes for an empty essence, to see where.
func ProbeDiffbase(patch map[string]any, kept diffbase.Storage) error {
	return kept.Store(patch, probeObject(), diffbase.Essence{})
}

// ProbeProgress adds to the patch what the storage writes for a record of the handler, to see where. No record of
// another handler looks like it. A storage that keeps records elsewhere than in the patch does not keep this one.
func ProbeProgress(patch map[string]any, kept progress.Storage, id string) error {
	purpose := id
	if err := kept.Store(patch, probeObject(), id, progress.Record{Purpose: &purpose}); err != nil {
		return fmt.Errorf("storing a record of handler %q: %w", id, err)
	}
	err := panics.Contain(func() error {
		kept.Purge(map[string]any{}, probeObject(), id)
		return progress.Flush(kept)
	})
	if err != nil {
		return fmt.Errorf("removing a record of handler %q: %w", id, err)
	}
	return nil
}
