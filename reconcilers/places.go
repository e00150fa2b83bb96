package reconcilers

import (
	"maps"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// Places are where the operator remembers what it handled, on every object, as JSON pointers, sorted: no one else may
// write there, neither a handler's record nor another operator. What storages keep elsewhere is not among them. It is
// an error if a storage cannot even store an empty essence.
func (o Options) Places() ([]string, error) {
	patch := map[string]any{}
	for _, kept := range []diffbase.Storage{o.Diffbase, changes.NewInterim(o.Prefix)} {
		if kept == nil {
			continue
		}
		if err := storages.ProbeDiffbase(patch, kept); err != nil {
			return nil, err
		}
	}
	if o.BoundTo != "" {
		if err := storage.Annotate(patch, []string{o.BoundTo}, ""); err != nil {
			return nil, err
		}
	}
	leaves := storage.Leaves(patch)
	// Every storage of a prefix writes its marker; it means nothing else.
	maps.DeleteFunc(leaves, func(_ string, value any) bool { return value == keys.ManagedValue })
	return slices.Sorted(maps.Keys(leaves)), nil
}
