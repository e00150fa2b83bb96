package progress

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// Annotations keeps each record in an annotation, "<prefix>/<id>" as [keys.Names] says, as JSON in ASCII without spaces
// and without a newline. Kopf: AnnotationsProgressStorage.
type Annotations struct {
	// Prefix is that of the annotations' keys: the operator's domain. Default: "kopf.zalando.org". For any other one,
	// the marker "<prefix>/kopf-managed" is written too. Kopf: prefix.
	Prefix string
	// TouchKey is the rest of the key of the touch annotation. Default: "touch-dummy". Kopf: touch_key.
	TouchKey string
	// Verbose writes the nulls of records, too. Kopf: verbose.
	Verbose bool
	// WithoutV1 switches off reading, writing and purging of the annotations that Kopf used once. Kopf: v1=False.
	WithoutV1 bool
	// Bound is the annotation that names the uid of the object that the memory belongs to. If given, objects that keep
	// their memory apart from a copy of another object's have keys with their kind: see [keys.MarkBound]. Kopf: none.
	Bound string
}

var _ Storage = Annotations{}

// Fetch reads the first of the id's annotations that is there: see [Reader]. A JSON null is as good as none.
func (a Annotations) Fetch(body map[string]any, id string) (*Record, error) {
	annotations, err := storage.Annotations(body)
	if err != nil {
		return nil, err
	}
	if len(annotations) == 0 {
		return nil, nil
	}
	for _, name := range a.names(body, id) {
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

// Clear removes all annotations of the prefix: see [Reader].
func (a Annotations) Clear(essence map[string]any) map[string]any {
	annotations, _ := storage.Annotations(essence)
	own := 0
	for name := range annotations {
		if a.owns(name) {
			own++
		}
	}
	if own == 0 {
		return storage.Trim(essence)
	}
	remaining := make(map[string]any, len(annotations)-own)
	for name, value := range annotations {
		if !a.owns(name) {
			remaining[name] = value
		}
	}
	return storage.Trim(storage.With(essence, []string{"metadata", "annotations"}, remaining))
}

// Store writes all of the id's annotations, and the marker of the prefix if the object lacks it: see [Writer].
func (a Annotations) Store(patch, body map[string]any, id string, record Record) error {
	text, err := record.encode(a.Verbose)
	if err != nil {
		return err
	}
	return a.write(patch, body, a.names(body, id), text)
}

// Purge removes all of the id's annotations: see [Writer]. The marker stays.
func (a Annotations) Purge(patch, body map[string]any, id string) {
	for _, name := range a.names(body, id) {
		purge(patch, body, diff.Path{"metadata", "annotations", name})
	}
}

// Touch writes those of the touch annotations that have another value, and the marker with them: see [Writer].
func (a Annotations) Touch(patch, body map[string]any, value *string) {
	annotations, _ := storage.Annotations(body)
	wanted := valueOrNil(value)
	for _, name := range a.names(body, cmp.Or(a.TouchKey, keys.Touch)) {
		if !diff.Equal(annotations[name], wanted) {
			// It fails only on a patch that has no place for annotations.
			_ = a.write(patch, body, []string{name}, wanted)
		}
	}
}

func (a Annotations) write(patch, body map[string]any, names []string, value any) error {
	if err := storage.Annotate(patch, names, value); err != nil {
		return err
	}
	if prefix := a.prefix(); keys.NeedsMarker(prefix) {
		return storage.AnnotateOnce(patch, body, keys.MarkerKey(prefix), keys.ManagedValue)
	}
	return nil
}

func (a Annotations) names(body map[string]any, key string) []string {
	return keys.Names(a.prefix(), keys.MarkBound(body, a.Bound, key), !a.WithoutV1)
}

func (a Annotations) owns(name string) bool {
	rest, ok := strings.CutPrefix(name, a.prefix())
	return ok && strings.HasPrefix(rest, "/")
}

// remembers tells whether there is any annotation of the prefix, be it a record or not, beside those of the id.
func (a Annotations) remembers(body map[string]any, id string) bool {
	annotations, _ := storage.Annotations(body)
	own := a.names(body, id)
	for name := range annotations {
		if a.owns(name) && !slices.Contains(own, name) {
			return true
		}
	}
	return false
}

func (a Annotations) prefix() string {
	return cmp.Or(a.Prefix, keys.KopfPrefix)
}

// purge removes what is at the path from the object, or takes it back from the patch if it is only there.
func purge(patch, body map[string]any, path diff.Path) {
	if _, ok := diff.Resolve(body, path); !ok {
		storage.Drop(patch, path)
		return
	}
	// It fails only if the patch replaces or removes a place that the path leads through, and the record with it.
	_ = storage.Put(patch, path, nil)
}

// Status keeps each record as an object in a field of the object, usually of its status, under the id as one key. The
// CRD must allow that field, or else the API server drops it, and nothing is ever done. Kopf: StatusProgressStorage.
type Status struct {
	// Name is the operator's name in the default fields; with dots, it is several keys. Default: "kopf". Kopf: name.
	Name string
	// Field is where the records are kept. Default: status.<name>.progress. Kopf: field.
	Field diff.Path
	// TouchField is where the touch value is. Default: status.<name>.dummy. It is not removed from essences. Kopf:
	// touch_field.
	TouchField diff.Path
	// NoWrite makes Store and Touch do nothing, for a status that only has records of former times. Kopf: the class
	// NoWriteStatusProgressStorage.
	NoWrite bool
}

var _ Storage = Status{}

var errNotMapping = errors.New("it is not a mapping")

// Fetch reads the id's object: see [Reader]. If the field is out of reach because there is something else than a
// mapping on the way, there is none; so it is with a null in place of the record.
func (s Status) Fetch(body map[string]any, id string) (*Record, error) {
	field := s.field()
	records, ok := diff.Resolve(body, field)
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

// Clear removes the field of the records with the mappings that become empty by that: see [Reader].
func (s Status) Clear(essence map[string]any) map[string]any {
	if remaining, err := storage.Without(essence, s.field()); err == nil {
		essence = remaining
	}
	return storage.Trim(essence)
}

// Store writes the id's object, with its nulls: they remove what a former record had there. See [Writer].
func (s Status) Store(patch, body map[string]any, id string, record Record) error {
	if s.NoWrite {
		return nil
	}
	object, path := record.Fields(), s.path(id)
	for _, own := range fields[kopfFields:] {
		if _, stale := diff.Resolve(body, append(slices.Clip(path), own.key)); stale && object[own.key] == nil {
			object[own.key] = nil
		}
	}
	return storage.Put(patch, path, object)
}

// Purge removes the id's object: see [Writer].
func (s Status) Purge(patch, body map[string]any, id string) {
	purge(patch, body, s.path(id))
}

// Touch writes the touch field if it has another value: see [Writer].
func (s Status) Touch(patch, body map[string]any, value *string) {
	if s.NoWrite {
		return
	}
	field := s.touchField()
	present, _ := diff.Resolve(body, field)
	if wanted := valueOrNil(value); !diff.Equal(present, wanted) {
		// It fails only on a patch that has no place for the field.
		_ = storage.Put(patch, field, wanted)
	}
}

// path is where the id's object is. The id is one key, whatever dots and slashes it has.
func (s Status) path(id string) diff.Path {
	return append(slices.Clip(s.field()), id)
}

// The fields of the default name, for which Clear must not allocate anything.
var (
	defaultField      = diff.ParsePath("status.kopf.progress")
	defaultTouchField = diff.ParsePath("status.kopf.dummy")
)

func (s Status) field() diff.Path {
	return s.or(s.Field, defaultField, "progress")
}

func (s Status) touchField() diff.Path {
	return s.or(s.TouchField, defaultTouchField, "dummy")
}

func (s Status) or(field, byDefault diff.Path, key string) diff.Path {
	switch {
	case len(field) > 0:
		return field
	case s.Name == "":
		return byDefault
	}
	return diff.ParsePath("status." + s.Name + "." + key)
}
