package diffbase

import (
	"cmp"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Status keeps the essence in a field of the object, usually of its status, as a string of JSON in ASCII. The CRD must
// allow that field, or else the API server drops it, and the object is new forever. Kopf: StatusDiffBaseStorage.
type Status struct {
	// Name is the operator's name in the default field; with dots, it is several keys. Default: "kopf". Kopf: name.
	Name string
	// Field is where the essence is kept. Default: status.<name>.last-handled-configuration. Kopf: field.
	Field diff.Path
	// IgnoredFields are removed from the essence, with the mappings that become empty by that: changes there are no
	// changes. They win over the extra fields. Kopf: ignored_fields.
	IgnoredFields []diff.Path
}

var _ Storage = Status{}

// Build makes the essence without the own field: see [Storage]. It is an error, too, if the essence has something else
// than a mapping on the way to that field.
func (s Status) Build(body map[string]any, extra []diff.Path) (Essence, error) {
	essence, err := build(body, extra, nil)
	if err != nil {
		return nil, err
	}
	if essence, err = ignore(essence, s.IgnoredFields); err != nil {
		return nil, err
	}
	return storage.Without(essence, s.field())
}

// Fetch reads the field: see [Storage]. If it is out of reach because there is something else than a mapping on the
// way, it is absent; so it is with a null, or a JSON null.
func (s Status) Fetch(body map[string]any) (Essence, error) {
	field := s.field()
	value, _ := diff.Resolve(body, field)
	essence, err := storage.Parse(value)
	if err != nil {
		return nil, &MalformedError{Where: "field " + field.String(), Err: err}
	}
	return essence, nil
}

// Store writes the field: see [Storage].
func (s Status) Store(patch, _ map[string]any, essence Essence) error {
	text, err := encode(essence)
	if err != nil {
		return err
	}
	return storage.Put(patch, s.field(), text)
}

func (s Status) field() diff.Path {
	if len(s.Field) > 0 {
		return s.Field
	}
	return diff.ParsePath("status." + cmp.Or(s.Name, "kopf") + ".last-handled-configuration")
}
