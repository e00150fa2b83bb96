package progress

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

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
	if _, stale := diff.Resolve(body, append(slices.Clip(path), succeededKey)); stale && record.Succeeded == nil {
		object[succeededKey] = nil
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
	if wanted := pointed(value); !diff.Equal(present, wanted) {
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
