package progress

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Annotations stores each record in an annotation, "<prefix>/<id>" as described at [keys.AnnotationKeys], as JSON in
// ASCII without spaces and without a newline. Kopf: AnnotationsProgressStorage.
type Annotations struct {
	// Prefix is the prefix of the annotations' keys: the operator's domain. Default: "kopf.zalando.org". With any other
	// prefix, the marker "<prefix>/kopf-managed" is written, too. Kopf: prefix.
	Prefix string
	// TouchKey is the name part of the touch annotation's key. Default: "touch-dummy". Kopf: touch_key.
	TouchKey string
	// Verbose also writes the nulls of records. Kopf: verbose.
	Verbose bool
	// WithoutV1 disables reading, writing and purging of the annotations that old versions of Kopf used. Kopf:
	// v1=False.
	WithoutV1 bool
	// Bound is the annotation with the uid of the object to which the memory belongs. If it is set, an object whose
	// memory must be distinguished from a copy of another object's memory uses keys with its kind: see
	// [keys.MarkForObject]. Kopf does not have it.
	Bound string
}

var _ Storage = Annotations{}

// Fetch reads the first of the id's annotations that exists: see [Reader]. The text "null" counts as absent.
func (a Annotations) Fetch(body map[string]any, id string) (*Record, error) {
	annotations, err := storage.AnnotationsOf(body)
	if err != nil {
		return nil, err
	}
	if len(annotations) == 0 {
		return nil, nil
	}
	for _, name := range a.annotationNames(body, id) {
		record, err := decodeText(annotations[name])
		if err != nil {
			return nil, &MalformedError{Where: "annotation " + name, Err: err}
		}
		if record != nil {
			return record, nil
		}
	}
	return nil, nil
}

// Clear removes all annotations with the prefix: see [Reader].
func (a Annotations) Clear(essence map[string]any) map[string]any {
	annotations, _ := storage.AnnotationsOf(essence)
	// They are counted first: most essences do not have any, and must not be copied.
	own := 0
	for name := range annotations {
		if a.ownsAnnotation(name) {
			own++
		}
	}
	if own == 0 {
		return storage.TrimEssence(essence)
	}
	remaining := make(map[string]any, len(annotations)-own)
	for name, value := range annotations {
		if !a.ownsAnnotation(name) {
			remaining[name] = value
		}
	}
	return storage.TrimEssence(storage.WithValue(essence, []string{"metadata", "annotations"}, remaining))
}

// Store writes all of the id's annotations, and the marker of the prefix if the object does not have it: see [Writer].
func (a Annotations) Store(patch, body map[string]any, id string, record Record) error {
	text, err := record.encodeText(a.Verbose)
	if err != nil {
		return err
	}
	return a.writeAnnotations(patch, body, a.annotationNames(body, id), text)
}

// Purge removes all of the id's annotations, but not the marker: see [Writer].
func (a Annotations) Purge(patch, body map[string]any, id string) {
	for _, name := range a.annotationNames(body, id) {
		purgePath(patch, body, diff.Path{"metadata", "annotations", name})
	}
}

// Touch writes the touch annotations that have a different value, and the marker: see [Writer].
func (a Annotations) Touch(patch, body map[string]any, value *string) {
	annotations, _ := storage.AnnotationsOf(body)
	wanted := valueOrNil(value)
	for _, name := range a.annotationNames(body, cmp.Or(a.TouchKey, keys.Touch)) {
		if !diff.Equal(annotations[name], wanted) {
			// This fails only if the patch has other values in place of the annotations. Touch does nothing then.
			_ = a.writeAnnotations(patch, body, []string{name}, wanted)
		}
	}
}

// writeAnnotations sets the annotations and the marker in the patch.
func (a Annotations) writeAnnotations(patch, body map[string]any, names []string, value any) error {
	if err := storage.SetAnnotations(patch, names, value); err != nil {
		return err
	}
	if prefix := a.prefixOrDefault(); keys.NeedsMarker(prefix) {
		return storage.SetAnnotationOnce(patch, body, keys.MarkerKey(prefix), keys.ManagedValue)
	}
	return nil
}

// annotationNames returns the full keys of the annotations for this object, the preferred one first.
func (a Annotations) annotationNames(body map[string]any, key string) []string {
	return keys.AnnotationKeysOn(body, a.prefixOrDefault(), a.Bound, key, !a.WithoutV1)
}

// ownsAnnotation reports whether the annotation has the prefix of the storage.
func (a Annotations) ownsAnnotation(name string) bool {
	rest, ok := strings.CutPrefix(name, a.prefixOrDefault())
	return ok && strings.HasPrefix(rest, "/")
}

// hasOtherAnnotations reports whether the object has any annotation with the prefix, record or not, except those of the
// id.
func (a Annotations) hasOtherAnnotations(body map[string]any, id string) bool {
	annotations, _ := storage.AnnotationsOf(body)
	own := a.annotationNames(body, id)
	for name := range annotations {
		if a.ownsAnnotation(name) && !slices.Contains(own, name) {
			return true
		}
	}
	return false
}

// prefixOrDefault returns the prefix with its default.
func (a Annotations) prefixOrDefault() string {
	return cmp.Or(a.Prefix, keys.KopfPrefix)
}

// purgePath removes the value at the path from the object, or only from the patch if the object does not have it.
func purgePath(patch, body map[string]any, path diff.Path) {
	if _, ok := diff.ResolvePath(body, path); !ok {
		storage.DropValue(patch, path)
		return
	}
	// This fails only if the patch replaces or removes a parent of the path, and so removes the record, too.
	_ = storage.PutValue(patch, path, nil)
}

// Status stores each record as an object in a field of the object, usually of its status, under the id as one key. The
// CRD must allow that field. Otherwise the API server drops the records, and all progress is lost. Kopf:
// StatusProgressStorage.
type Status struct {
	// Name is the operator's name in the default fields. A name with dots makes several keys. Default: "kopf". Kopf:
	// name.
	Name string
	// Field is the path of the records. Default: status.<name>.progress. Kopf: field.
	Field diff.Path
	// TouchField is the path of the touch value. Default: status.<name>.dummy. It is not removed from essences. Kopf:
	// touch_field.
	TouchField diff.Path
	// NoWrite disables Store and Touch, for a status that has only the records of former versions. Kopf: the class
	// NoWriteStatusProgressStorage.
	NoWrite bool
}

var _ Storage = Status{}

var errNotMapping = errors.New("it is not a mapping")

// Fetch reads the object of the id: see [Reader]. The record counts as absent if the path leads through a value that is
// not a mapping, or if the record is null.
func (s Status) Fetch(body map[string]any, id string) (*Record, error) {
	field := s.fieldOrDefault()
	records, ok := diff.ResolvePath(body, field)
	if !ok {
		return nil, nil
	}
	byID, ok := records.(map[string]any)
	if !ok {
		return nil, &MalformedError{Where: "field " + field.String(), Err: errNotMapping}
	}
	value := byID[id]
	if value == nil {
		return nil, nil
	}
	where := fmt.Sprintf("field %s, key %s", field, id)
	object, ok := value.(map[string]any)
	if !ok {
		return nil, &MalformedError{Where: where, Err: errNotMapping}
	}
	record, err := DecodeRecord(object)
	if err != nil {
		return nil, &MalformedError{Where: where, Err: err}
	}
	return &record, nil
}

// Clear removes the field of the records, together with the mappings that become empty: see [Reader].
func (s Status) Clear(essence map[string]any) map[string]any {
	if remaining, err := storage.WithoutValue(essence, s.fieldOrDefault()); err == nil {
		essence = remaining
	}
	return storage.TrimEssence(essence)
}

// Store writes the object of the id with its nulls, which remove the values of an earlier record: see [Writer].
func (s Status) Store(patch, body map[string]any, id string, record Record) error {
	if s.NoWrite {
		return nil
	}
	object, path := record.JSONFields(), s.recordPath(id)
	// The fields that Kopf does not have are written as nulls only if the stored record has them.
	for _, own := range recordFields[kopfFieldCount:] {
		if _, stale := diff.ResolvePath(body, append(slices.Clip(path), own.key)); stale && object[own.key] == nil {
			object[own.key] = nil
		}
	}
	return storage.PutValue(patch, path, object)
}

// Purge removes the object of the id: see [Writer].
func (s Status) Purge(patch, body map[string]any, id string) {
	purgePath(patch, body, s.recordPath(id))
}

// Touch writes the touch field if it has another value: see [Writer].
func (s Status) Touch(patch, body map[string]any, value *string) {
	if s.NoWrite {
		return
	}
	field := s.touchFieldOrDefault()
	present, _ := diff.ResolvePath(body, field)
	if wanted := valueOrNil(value); !diff.Equal(present, wanted) {
		// This fails only if the patch has other values in place of the field. Touch does nothing then.
		_ = storage.PutValue(patch, field, wanted)
	}
}

// recordPath returns the path of the id's object. The id is one key, including its dots and slashes.
func (s Status) recordPath(id string) diff.Path {
	return append(slices.Clip(s.fieldOrDefault()), id)
}

// The default paths are parsed once, because Clear must not allocate.
var (
	defaultField      = diff.ParsePath("status.kopf.progress")
	defaultTouchField = diff.ParsePath("status.kopf.dummy")
)

// fieldOrDefault returns the path of the records with its default.
func (s Status) fieldOrDefault() diff.Path {
	return s.pathOrDefault(s.Field, defaultField, "progress")
}

// touchFieldOrDefault returns the path of the touch value with its default.
func (s Status) touchFieldOrDefault() diff.Path {
	return s.pathOrDefault(s.TouchField, defaultTouchField, "dummy")
}

// pathOrDefault returns the field if it is set, and otherwise the default path, which depends on the name.
func (s Status) pathOrDefault(field, byDefault diff.Path, key string) diff.Path {
	switch {
	case len(field) > 0:
		return field
	case s.Name == "":
		return byDefault
	}
	return diff.ParsePath("status." + s.Name + "." + key)
}
