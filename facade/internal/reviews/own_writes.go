package reviews

import (
	"cmp"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// ownWrites are the annotations and the finalizer that the operator writes by these settings. Storages of the user's
// own code may write anything, so only those of this framework are looked at.
func ownWrites(p defaults.Persistence) *review.OwnWrites {
	prefixes := slices.Concat([]string{p.AnnotationPrefix}, diffbasePrefixes(p.DiffbaseStorage),
		progressPrefixes(p.ProgressStorage))
	slices.Sort(prefixes)
	return &review.OwnWrites{Prefixes: slices.Compact(prefixes), Finalizer: p.Finalizer}
}

func diffbasePrefixes(of diffbase.Storage) (prefixes []string) {
	switch of := of.(type) {
	case diffbase.Annotations:
		return []string{cmp.Or(of.Prefix, keys.KopfPrefix)}
	case diffbase.Multi:
		for _, one := range of {
			prefixes = append(prefixes, diffbasePrefixes(one)...)
		}
	}
	return prefixes
}

func progressPrefixes(of progress.Storage) (prefixes []string) {
	switch of := of.(type) {
	case progress.Annotations:
		return []string{cmp.Or(of.Prefix, keys.KopfPrefix)}
	case progress.Smart:
		return []string{cmp.Or(of.Prefix, keys.KopfPrefix)}
	case progress.Multi:
		for _, one := range of {
			prefixes = append(prefixes, progressPrefixes(one)...)
		}
	}
	return prefixes
}
