package progress

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

// Multi is several storages at once: all of them are written, purged, touched and cleared, and a record is read from
// the first one that has any. Without storages, nothing is ever kept. Kopf: MultiProgressStorage.
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
//
// The status counts only as long as the object has no other annotation of the prefix, and is not being deleted: who may
// write its status, and nothing else of it, can neither have a deletion skipped nor anything of an object that was
// handled once (deviation D-status-rights; Kopf believes the status always). So what is taken over from the status must
// be moved to annotations at once, all of it, before anything else is written there.
type Smart struct {
	// Prefix, TouchKey, Verbose and WithoutV1 are those of [Annotations].
	Prefix, TouchKey   string
	Verbose, WithoutV1 bool
	// Name, Field and TouchField are those of [Status]; the latter has no effect.
	Name              string
	Field, TouchField diff.Path
}

var _ Storage = Smart{}

// Fetch reads the annotation, or else the status, if that counts. Where it does not, it is not malformed either.
func (s Smart) Fetch(body map[string]any, id string) (*Record, error) {
	written := s.Written()
	if record, err := written.Fetch(body, id); err != nil || record != nil {
		return record, err
	}
	if deleting, _ := diff.Resolve(body, deletion); deleting != nil || written.remembers(body, id) {
		return nil, nil
	}
	return s.status().Fetch(body, id)
}

var deletion = diff.Path{"metadata", "deletionTimestamp"}

// Clear removes the annotations and the field of the status.
func (s Smart) Clear(essence map[string]any) map[string]any {
	return s.status().Clear(s.Written().Clear(essence))
}

// Store writes the annotation.
func (s Smart) Store(patch, body map[string]any, id string, record Record) error {
	return s.Written().Store(patch, body, id, record)
}

// Purge removes the record from the annotations and from the status.
func (s Smart) Purge(patch, body map[string]any, id string) {
	s.Written().Purge(patch, body, id)
	s.status().Purge(patch, body, id)
}

// Touch writes the touch annotation.
func (s Smart) Touch(patch, body map[string]any, value *string) {
	s.Written().Touch(patch, body, value)
}

// Written is the part that is written to: what it lacks is in the status only.
func (s Smart) Written() Annotations {
	return Annotations{Prefix: s.Prefix, TouchKey: s.TouchKey, Verbose: s.Verbose, WithoutV1: s.WithoutV1}
}

func (s Smart) status() Status {
	return Status{Name: s.Name, Field: s.Field, TouchField: s.TouchField, NoWrite: true}
}
