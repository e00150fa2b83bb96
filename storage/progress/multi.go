package progress

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

// Multi is several storages at once: all of them are written, purged, touched and cleared, and a record is read from the
// first one that has any. Without storages, nothing is ever kept. Kopf: MultiProgressStorage.
type Multi []Storage

var _ Storage = Multi(nil)

// Fetch reads from the first storage that has a record. One that has a malformed one ends the search.
func (m Multi) Fetch(body map[string]any, id string) (*Record, error) {
	for _, storage := range m {
		if record, err := storage.Fetch(body, id); err != nil || record != nil {
			return record, err
		}
	}
	return nil, nil
}

// Clear removes what any of the storages keeps.
func (m Multi) Clear(essence map[string]any) map[string]any {
	for _, storage := range m {
		essence = storage.Clear(essence)
	}
	return essence
}

// Store writes to all of the storages.
func (m Multi) Store(patch, body map[string]any, id string, record Record) error {
	for _, storage := range m {
		if err := storage.Store(patch, body, id, record); err != nil {
			return err
		}
	}
	return nil
}

// Purge removes the record from all of the storages.
func (m Multi) Purge(patch, body map[string]any, id string) {
	for _, storage := range m {
		storage.Purge(patch, body, id)
	}
}

// Touch touches in all of the storages.
func (m Multi) Touch(patch, body map[string]any, value *string) {
	for _, storage := range m {
		storage.Touch(patch, body, value)
	}
}

// Smart keeps records in annotations, and still reads, purges and clears those that former versions of Kopf left in the
// status; a record in an annotation wins. The zero value is Kopf's default storage: SmartProgressStorage.
type Smart struct {
	// Prefix, TouchKey, Verbose and WithoutV1 are those of [Annotations].
	Prefix, TouchKey   string
	Verbose, WithoutV1 bool
	// Name, Field and TouchField are those of [Status]; the latter has no effect.
	Name              string
	Field, TouchField diff.Path
}

var _ Storage = Smart{}

// Fetch reads the annotation, or else the status.
func (s Smart) Fetch(body map[string]any, id string) (*Record, error) {
	if record, err := s.annotations().Fetch(body, id); err != nil || record != nil {
		return record, err
	}
	return s.status().Fetch(body, id)
}

// Clear removes the annotations and the field of the status.
func (s Smart) Clear(essence map[string]any) map[string]any {
	return s.status().Clear(s.annotations().Clear(essence))
}

// Store writes the annotation.
func (s Smart) Store(patch, body map[string]any, id string, record Record) error {
	return s.annotations().Store(patch, body, id, record)
}

// Purge removes the record from the annotations and from the status.
func (s Smart) Purge(patch, body map[string]any, id string) {
	s.annotations().Purge(patch, body, id)
	s.status().Purge(patch, body, id)
}

// Touch writes the touch annotation.
func (s Smart) Touch(patch, body map[string]any, value *string) {
	s.annotations().Touch(patch, body, value)
}

func (s Smart) annotations() Annotations {
	return Annotations{Prefix: s.Prefix, TouchKey: s.TouchKey, Verbose: s.Verbose, WithoutV1: s.WithoutV1}
}

func (s Smart) status() Status {
	return Status{Name: s.Name, Field: s.Field, TouchField: s.TouchField, NoWrite: true}
}
