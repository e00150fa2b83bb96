package facade

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

var (
	errNoStorage   = errors.New("the storage is nil")
	errEmptyMulti  = errors.New("there are no storages in Multi, so nothing would ever be remembered")
	errNeverWrites = errors.New("the storage never writes: put it into a Multi, beside one that does")
)

// checkDiffbase tells what is wrong with a storage, as far as that can be seen.
func checkDiffbase(kept diffbase.Storage) error {
	if kept == nil {
		return errNoStorage
	}
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
	patch := map[string]any{}
	if err := storages.ProbeDiffbase(patch, kept); err != nil {
		return fmt.Errorf("storing an empty essence: %w", err)
	}
	return checkPlaces(patch)
}

// checkProgress tells what is wrong with a storage, as far as that can be seen.
func checkProgress(kept progress.Storage) error {
	if kept == nil {
		return errNoStorage
	}
	if multi, ok := kept.(progress.Multi); ok && len(multi) == 0 {
		return errEmptyMulti
	} else if ok {
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
	if status, ok := kept.(progress.Status); ok && status.NoWrite {
		return errNeverWrites
	}
	patch, err := recordPatch(kept, "handler")
	if err != nil {
		return err
	}
	return checkPlaces(patch)
}

// recordPatch gives what a storage writes for a record of the handler.
func recordPatch(kept progress.Storage, id string) (map[string]any, error) {
	patch := map[string]any{}
	if err := storages.ProbeProgress(patch, kept, id); err != nil {
		return nil, err
	}
	return patch, nil
}

// checkPlaces tells whether the API server would take what a storage writes.
func checkPlaces(patch map[string]any) error {
	for place := range storage.Leaves(patch) {
		rest, annotation := strings.CutPrefix(place, "/metadata/annotations/")
		stanza, _, _ := strings.Cut(strings.TrimPrefix(place, "/"), "/")
		switch {
		case annotation:
			if err := keys.ValidateKey(strings.ReplaceAll(rest, "~1", "/")); err != nil {
				return err
			}
		case place == "" || slices.Contains([]string{"apiVersion", "kind", "metadata"}, stanza):
			return fmt.Errorf(
				"nothing can be kept at %s: only in annotations, and in stanzas such as the status",
				cmp.Or(place, "the root"),
			)
		}
	}
	return nil
}

// sharePlace tells whether the records of two ids are at one place. Every storage has its own rules, so it is asked.
func (op *Operator) sharePlace(a, b string) bool {
	first, err := recordPatch(op.settings.values.Persistence.ProgressStorage, a)
	if err != nil {
		return false // checkRecordPlace reports the error
	}
	second, err := recordPatch(op.settings.values.Persistence.ProgressStorage, b)
	if err != nil {
		return false
	}
	places := storage.Leaves(first)
	for place, value := range storage.Leaves(second) {
		if held, both := places[place]; both && !diff.Equal(held, value) {
			return true
		}
	}
	return false
}

// checkRecordPlace tells whether a handler's record would overwrite what else the operator keeps on objects.
func (op *Operator) checkRecordPlace(one resolved) error {
	id := one.handler.ID
	patch, err := recordPatch(op.settings.values.Persistence.ProgressStorage, id)
	if err != nil {
		return fmt.Errorf("%s(%q): %w", one.verb, id, err)
	}
	taken, err := op.engineOptions(nil).Places()
	if err != nil {
		return fmt.Errorf("%s(%q): asking the storages for their places: %w", one.verb, id, err)
	}
	for place := range storage.Leaves(patch) {
		if slices.Contains(taken, place) {
			return fmt.Errorf(
				"%s(%q): the record would be at %s, which the operator needs for itself; choose another id", one.verb,
				id, place,
			)
		}
	}
	return nil
}
