package progress

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// A Storage keeps the records of handlers on their object. Kopf: ProgressStorage.
//
// An object is given as its body: the JSON of the whole object, read only. An id is the full one of a handler, such as
// "create_fn", "create_fn/sub" or "fn/spec.field".
type Storage interface {
	Reader
	Writer
}

// A Reader finds records, and removes them from what is taken for the user's.
type Reader interface {
	// Fetch reads the record of a handler; nil if there is none. If something is there that cannot be read, it is a
	// [*MalformedError].
	Fetch(body map[string]any, id string) (*Record, error)

	// Clear returns an essence, built or fetched, without all that the storage keeps. Places that are empty then are
	// removed as in essences: metadata.annotations, metadata.labels, metadata, status. The essence is not modified; if
	// there is nothing to remove, it is returned itself, and nothing is allocated.
	Clear(essence map[string]any) map[string]any
}

// A Writer adds changes to a merge-patch of the object in place. Where the patch has something else than a mapping in
// the way, Store fails, while Purge and Touch do nothing there.
type Writer interface {
	// Store writes the record of a handler. It is an error, too, if one of its unknown keys holds what is not JSON.
	Store(patch, body map[string]any, id string, record Record) error

	// Purge removes the record of a handler: from the object if it is there, otherwise from the patch with the mappings
	// that become empty by that. So a handler that was never stored leaves no trace.
	Purge(patch, body map[string]any, id string)

	// Touch writes a value that has no meaning, only to change the object; nil removes it. What is there already is not
	// written.
	Touch(patch, body map[string]any, value *string)
}

// A Flusher is a storage that collects records, such as for one transaction of a database. Flush is called after the
// records of a pass over an object are stored and purged, before the object itself is written; it may be called more
// often. An error has the object tried again. Kopf: flush.
type Flusher interface {
	Flush() error
}

// Flush calls the method Flush of a storage that has it; of several storages, of each.
func Flush(storage Storage) error {
	switch storage := storage.(type) {
	case Multi:
		for _, one := range storage {
			if err := Flush(one); err != nil {
				return err
			}
		}
	case Flusher:
		return storage.Flush()
	}
	return nil
}

// MalformedError says that nobody can read a record on the object: it is text that is not JSON, JSON that is not an
// object, or a key has a wrong type. An operator handles nothing but the deletion of such an object until somebody
// repairs or removes it.
type MalformedError struct {
	// Where is the place on the object, such as "annotation kopf.zalando.org/create_fn".
	Where string
	// Err is what is wrong with it; it names the key if that is of a wrong type.
	Err error
}

// Error names the place and the reason, which may quote what is there: the beginning of it.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed progress in %s: %s", e.Where, storage.Excerpt(e.Err.Error()))
}

// Unwrap returns the reason.
func (e *MalformedError) Unwrap() error {
	return e.Err
}

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
