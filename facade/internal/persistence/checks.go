package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

var (
	errNoStorage   = errors.New("the storage is nil")
	errEmptyMulti  = errors.New("there are no storages in Multi, so nothing would ever be remembered")
	errNeverWrites = errors.New("the storage never writes: put it into a Multi, beside one that does")
)

// CheckDiffbase tells what is wrong with a storage of last-handled configurations, as far as that can be seen.
func CheckDiffbase(kept diffbase.Storage) error {
	if kept == nil {
		return errNoStorage
	}
	if multi, ok := kept.(diffbase.Multi); ok {
		if len(multi) == 0 {
			return errEmptyMulti
		}
		for _, one := range multi {
			if err := CheckDiffbase(one); err != nil {
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

// CheckProgress tells what is wrong with a storage of progress, as far as that can be seen.
func CheckProgress(kept progress.Storage) error {
	if kept == nil {
		return errNoStorage
	}
	if multi, ok := kept.(progress.Multi); ok && len(multi) == 0 {
		return errEmptyMulti
	} else if ok {
		writes := false
		for _, one := range multi {
			err := CheckProgress(one)
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

// CheckPrefix tells whether the operator's own annotations can be written.
func CheckPrefix(prefix string, legacy bool) error {
	if err := keys.ValidatePrefix(prefix); err != nil {
		return err
	}
	for _, key := range []string{keys.LastHandled, keys.Touch} {
		for _, name := range keys.Names(prefix, key, legacy) {
			if err := keys.ValidateKey(name); err != nil {
				return fmt.Errorf("the prefix %q is too long for the annotations that Kopf used once: %w", prefix, err)
			}
		}
	}
	return nil
}
