package defaults

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

var (
	errNoStorage   = errors.New("the storage is nil")
	errEmptyMulti  = errors.New("there are no storages in Multi, so nothing would ever be remembered")
	errNeverWrites = errors.New("the storage never writes: put it into a Multi, beside one that does")
)

// checkDiffbase returns the mistake of a diffbase storage, as far as a probe finds it.
func checkDiffbase(kept diffbase.Storage) error {
	if kept == nil {
		return errNoStorage
	}
	// Check each part, because a part can be nil or another Multi.
	if multi, ok := kept.(diffbase.Multi); ok {
		if len(multi) == 0 {
			return errEmptyMulti
		}
		for _, one := range multi {
			if err := checkDiffbase(one); err != nil {
				return err
			}
		}
		return nil
	}
	// Let the storage write an empty essence, and look at the fields that it changes.
	patch := map[string]any{}
	if err := storages.ProbeDiffbase(patch, kept); err != nil {
		return fmt.Errorf("storing an empty essence: %w", err)
	}
	return checkPlaces(patch)
}

// checkProgress returns the mistake of a progress storage, as far as a probe finds it.
func checkProgress(kept progress.Storage) error {
	if kept == nil {
		return errNoStorage
	}
	if multi, ok := kept.(progress.Multi); ok && len(multi) == 0 {
		return errEmptyMulti
	} else if ok {
		// A storage that only reads, such as for a migration, is valid if another one of the Multi writes.
		writes := false
		for _, one := range multi {
			err := checkProgress(one)
			if err != nil && !errors.Is(err, errNeverWrites) {
				return err
			}
			writes = writes || err == nil
		}
		if !writes {
			return errNeverWrites
		}
		return nil
	}
	// A single storage that never writes would lose all progress: handlers would run again after each restart.
	if status, ok := kept.(progress.Status); ok && status.NoWrite {
		return errNeverWrites
	}
	patch, err := recordPatch(kept, "handler")
	if err != nil {
		return err
	}
	return checkPlaces(patch)
}

// checkPlaces returns an error if the API server would reject or drop the fields that a storage writes.
func checkPlaces(patch map[string]any) error {
	for place := range storage.PatchLeaves(patch) {
		// A place is a JSON pointer, in which "~1" is a slash.
		rest, annotation := strings.CutPrefix(place, "/metadata/annotations/")
		stanza, _, _ := strings.Cut(strings.TrimPrefix(place, "/"), "/")
		// An invalid annotation makes the API server reject the whole patch, with all other changes in it.
		switch {
		case annotation:
			if err := keys.ValidateKey(strings.ReplaceAll(rest, "~1", "/")); err != nil {
				return err
			}
		// Identity and system metadata belong to the API server.
		case place == "" || slices.Contains([]string{"apiVersion", "kind", "metadata"}, stanza):
			return fmt.Errorf(
				"nothing can be kept at %s: only in annotations, and in stanzas such as the status",
				cmp.Or(place, "the root"),
			)
		}
	}
	return nil
}

// checkPrefix returns an error if the annotations with this prefix are invalid. With legacy, Kopf's former names of
// annotations are checked, too: there, prefix and name share 63 characters.
func checkPrefix(prefix string, legacy bool) error {
	// First the prefix alone, then together with the names of annotations.
	if err := keys.ValidatePrefix(prefix); err != nil {
		return err
	}
	for _, key := range []string{keys.LastHandled, keys.Touch} {
		for _, name := range keys.AnnotationKeys(prefix, key, legacy) {
			if err := keys.ValidateKey(name); err != nil {
				return fmt.Errorf("the prefix %q is too long for the annotations that Kopf used once: %w", prefix, err)
			}
		}
	}
	return nil
}

// RecordPlaces returns the places where a storage keeps the record of a handler: sorted JSON pointers.
func RecordPlaces(kept progress.Storage, id string) ([]string, error) {
	patch, err := recordPatch(kept, id)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(storage.PatchLeaves(patch))), nil
}

// EssencePlaces returns the places where a storage keeps the last-handled configuration: sorted JSON pointers.
func EssencePlaces(kept diffbase.Storage) ([]string, error) {
	patch := map[string]any{}
	if err := storages.ProbeDiffbase(patch, kept); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(storage.PatchLeaves(patch))), nil
}

// ShareRecordPlace reports whether the records of two ids overwrite each other. For a storage that fails, it returns
// false, because RecordPlaces returns the error.
func ShareRecordPlace(kept progress.Storage, a, b string) bool {
	first, err := recordPatch(kept, a)
	if err != nil {
		return false
	}
	second, err := recordPatch(kept, b)
	if err != nil {
		return false
	}
	places := storage.PatchLeaves(first)
	// Different values at one place are a conflict. Equal ones are shared data, such as a marker of the storage.
	for place, value := range storage.PatchLeaves(second) {
		if held, both := places[place]; both && !diff.Equal(held, value) {
			return true
		}
	}
	return false
}

// recordPatch returns the patch in which a storage writes a record of the handler.
func recordPatch(kept progress.Storage, id string) (map[string]any, error) {
	patch := map[string]any{}
	if err := storages.ProbeProgress(patch, kept, id); err != nil {
		return nil, err
	}
	return patch, nil
}
