package draining

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// traces are the things that the operator has stored for one object.
type traces struct {
	finalizer bool
	places    removal
	outside   []string // ids of records that the storage keeps outside of the object
	foreign   []string // annotations of the prefix that the operator has not written; they stay
}

// isEmpty reports whether there is nothing to remove.
func (t traces) isEmpty() bool { return !t.finalizer && len(t.places) == 0 && len(t.outside) == 0 }

// describe lists the things, for people.
func (t traces) describe() string {
	names := t.places.listPlaces()
	if t.finalizer {
		names = append([]string{"finalizer"}, names...)
	}
	for _, id := range t.outside {
		names = append(names, "record of "+id)
	}
	return strings.Join(names, ", ")
}

// tracesOf finds the things on an object of a handled kind. The ids are those of the handlers of the kind. In a check,
// nothing is removed from a storage outside of the object. The storages of users may panic, which is an error.
func (d *Drain) tracesOf(body map[string]any, ids []string) (t traces, err error) {
	t.places = removal{}
	t.finalizer = d.mayRemoveShared() && slices.Contains(finalizersOf(body), d.Finalizer)
	if d.KeepMemory {
		return t, nil
	}
	err = panics.Contain(func() error {
		t.outside = d.addRecords(t.places, body, ids)
		if err := d.addEssence(t.places, body); err != nil {
			return err
		}
		d.addCleared(t.places, body)
		return nil
	})
	if err != nil {
		return t, fmt.Errorf("asking the storages of the operator: %w", err)
	}
	t.foreign = d.addAnnotations(t.places, body, ids)
	d.addMarks(t.places, body)
	d.addMarkers(t.places, body)
	return t, nil
}

// addRecords adds the records of the ids and of their sub-handlers. It returns the ids of records outside of the
// object, which it purges unless this is a check.
func (d *Drain) addRecords(to removal, body map[string]any, ids []string) (outside []string) {
	inside := placeOfRecords(d.Progress) != elsewhere
	for _, id := range ids {
		record, malformed := d.Progress.Fetch(body, id)
		all := []string{id}
		if record != nil {
			all = append(all, record.Subrefs...)
		}
		found := record != nil || malformed != nil
		for _, id := range all {
			// Purge of a foreign storage has effects outside of the patch, so it is called only if necessary.
			if !inside && (!found || d.Check) {
				continue
			}
			patch := map[string]any{}
			d.Progress.Purge(patch, body, id)
			to.addPlaces(patch, body, nulls)
		}
		if !inside && found {
			outside = append(outside, id)
		}
	}
	if d.mayRemoveShared() {
		patch := map[string]any{}
		d.Progress.Touch(patch, body, nil)
		to.addPlaces(patch, body, nulls)
	}
	return outside
}

// addEssence adds the last-handled configuration. A storage cannot remove it, but a trial write shows its places.
func (d *Drain) addEssence(to removal, body map[string]any) error {
	if !d.mayRemoveShared() {
		return nil
	}
	places := map[string]any{}
	var err error
	if placeOfEssence(d.Diffbase) != elsewhere {
		err = d.Diffbase.Store(places, body, diffbase.Essence{})
	} else {
		// A foreign storage could store the empty essence elsewhere, so it does not get the real object.
		err = storages.ProbeDiffbase(places, d.Diffbase)
	}
	if err == nil {
		to.addPlaces(places, body, anyValue)
	}
	return err
}

// addCleared adds what the storage of records clears from essences, so that records of unknown ids are included. The
// annotations of the prefix are judged one by one instead. A foreign storage is not trusted with that: by a mistake in
// its Clear, fields of users would be removed.
func (d *Drain) addCleared(to removal, body map[string]any) {
	if d.Shared || placeOfRecords(d.Progress) == elsewhere {
		return
	}
	cleared := d.Progress.Clear(body)
	places := missingIn(cleared, body)
	delete(places, "metadata")
	to.addPlaces(places, body, anyValue)
	annotations, _ := storage.AnnotationsOf(body)
	left, _ := storage.AnnotationsOf(cleared)
	for name := range annotations {
		if _, stays := left[name]; !stays && !strings.HasPrefix(name, d.Prefix+"/") {
			to.addAnnotation(body, name)
		}
	}
}

// addAnnotations adds the annotations of the prefix that the framework itself writes, and records of former handlers.
// It returns the other annotations of the prefix, which a user or a handler has written. With a shared prefix, only the
// records of children of the ids are certain to be those of the operator.
func (d *Drain) addAnnotations(to removal, body map[string]any, ids []string) (foreign []string) {
	annotations, _ := storage.AnnotationsOf(body)
	for name, value := range annotations {
		rest, ok := strings.CutPrefix(name, d.Prefix+"/")
		if _, known := to.annotations()[name]; known || !ok {
			continue
		}
		switch {
		case keys.IsReserved(rest) && (d.mayRemoveShared() || d.isRecordOfChildren(body, name, ids)),
			!d.Shared && clusterops.IsRecord(value):
			to.addAnnotation(body, name)
		case !d.Shared:
			foreign = append(foreign, name)
		}
	}
	slices.Sort(foreign)
	return foreign
}

// isRecordOfChildren reports whether the annotation lists the children of one of the handlers.
func (d *Drain) isRecordOfChildren(body map[string]any, name string, ids []string) bool {
	return slices.ContainsFunc(ids, func(id string) bool {
		return slices.ContainsFunc([]string{keys.ChildrenOf, keys.ChildrenOfRun}, func(of string) bool {
			return name == keys.AnnotationKeyOn(body, d.Prefix, "", of+id)
		})
	})
}

// addMarkers adds the marker of each prefix whose annotations are removed. With a shared prefix, the marker stays as
// long as there are other annotations.
func (d *Drain) addMarkers(to removal, body map[string]any) {
	removed := to.annotations()
	annotations, _ := storage.AnnotationsOf(body)
	for name := range maps.Clone(removed) {
		prefix, _, _ := strings.Cut(name, "/")
		marker := keys.MarkerKey(prefix)
		to.addAnnotation(body, marker)
		if d.Shared && slices.ContainsFunc(slices.Collect(maps.Keys(annotations)), func(name string) bool {
			_, gone := removed[name]
			return !gone && name != marker && strings.HasPrefix(name, prefix+"/")
		}) {
			delete(removed, marker)
		}
	}
}

// storedPlace is where a storage keeps things.
type storedPlace int

const (
	// elsewhere is a storage of a user. All others keep everything on the object, so that a purge has no other effect.
	elsewhere storedPlace = iota
	onObject
	inAnnotations
)

// placeOfRecords returns where a storage keeps all records.
func placeOfRecords(of progress.Storage) storedPlace {
	switch of := of.(type) {
	case progress.Annotations:
		return inAnnotations
	case progress.Status, progress.Smart:
		return onObject
	case progress.Multi:
		return leastOf(of, placeOfRecords)
	default:
		return elsewhere
	}
}

// placeOfEssence returns where a storage keeps all essences.
func placeOfEssence(of diffbase.Storage) storedPlace {
	switch of := of.(type) {
	case diffbase.Annotations:
		return inAnnotations
	case diffbase.Status:
		return onObject
	case diffbase.Multi:
		return leastOf(of, placeOfEssence)
	default:
		return elsewhere
	}
}

// leastOf returns the least certain place of several storages.
func leastOf[S any](all []S, placeOf func(S) storedPlace) storedPlace {
	least := inAnnotations
	for _, one := range all {
		least = min(least, placeOf(one))
	}
	return least
}

// finalizersOf returns the finalizers of an object.
func finalizersOf(body map[string]any) []string {
	return (&unstructured.Unstructured{Object: body}).GetFinalizers()
}
