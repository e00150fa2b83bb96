package progress

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// A Storage keeps the records of handlers on their object. Kopf: ProgressStorage.
//
// The body parameters are the JSON of the whole object, and must not be modified. An id is the full id of a handler,
// such as "create_fn", "create_fn/sub" or "fn/spec.field".
type Storage interface {
	Reader
	Writer
}

// A Reader fetches records, and removes them from essences.
type Reader interface {
	// Fetch returns the record of a handler, and nil if there is none. If the stored value cannot be decoded, it
	// returns a [*MalformedError].
	Fetch(body map[string]any, id string) (*Record, error)

	// Clear returns an essence, built or fetched, without all data of the storage. Then it removes system places that
	// are empty, as in essences: metadata.annotations, metadata.labels, metadata, status. It does not modify the
	// essence. If there is nothing to remove, it returns the essence itself and does not allocate.
	Clear(essence map[string]any) map[string]any
}

// A Writer adds changes to a merge-patch of the object in place. If the patch has a value that is not a mapping in
// place of a parent, Store returns an error, and Purge and Touch do nothing.
type Writer interface {
	// Store writes the record of a handler. It also returns an error if an unknown key of the record has a value that
	// is not JSON.
	Store(patch, body map[string]any, id string, record Record) error

	// Purge removes the record of a handler. If the object has the record, the patch removes it. Otherwise, the record
	// is taken out of the patch, together with the mappings that become empty. So a handler that was never stored
	// leaves no trace.
	Purge(patch, body map[string]any, id string)

	// Touch writes a value whose only purpose is to change the object; nil removes it. A value that the object already
	// has is not written.
	Touch(patch, body map[string]any, value *string)
}

// A Flusher is a storage that collects records, such as for one transaction of a database. Flush is called after the
// records of a pass are stored and purged, before the object itself is written. It can be called more often. After an
// error, the object is retried. Kopf: flush.
type Flusher interface {
	Flush() error
}

// Flush calls the Flush method of a storage that has one. For a [Multi], it flushes each of the storages, up to the
// first error.
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

// MalformedError is the error of a record that cannot be decoded: it is not JSON, not an object, or a key has the wrong
// type. The operator then handles only the deletion of the object, until a user repairs or removes the record.
type MalformedError struct {
	// Where is the place on the object, such as "annotation kopf.zalando.org/create_fn".
	Where string
	// Err is the reason. It names the key if the key has the wrong type.
	Err error
}

// Error returns the place and the reason, which may quote the beginning of the stored value.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed progress in %s: %s", e.Where, storage.TextExcerpt(e.Err.Error()))
}

// Unwrap returns the reason.
func (e *MalformedError) Unwrap() error {
	return e.Err
}

// Multi combines several storages: it writes, purges, touches and clears all of them, and reads a record from the first
// one that has it. Without storages, nothing is stored. Kopf: MultiProgressStorage.
type Multi []Storage

var _ Storage = Multi(nil)

// Fetch returns the record of the first storage that has one. A malformed record ends the search with its error.
func (m Multi) Fetch(body map[string]any, id string) (*Record, error) {
	for _, storage := range m {
		if record, err := storage.Fetch(body, id); err != nil || record != nil {
			return record, err
		}
	}
	return nil, nil
}

// Clear removes the data of all storages.
func (m Multi) Clear(essence map[string]any) map[string]any {
	for _, storage := range m {
		essence = storage.Clear(essence)
	}
	return essence
}

// Store writes the record to all of the storages.
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

// Smart stores records in annotations. It also reads, purges and clears the records that former versions of Kopf left
// in the status; a record in an annotation takes precedence. The zero value is Kopf's default storage:
// SmartProgressStorage.
//
// The status counts only while the object has no other annotation with the prefix and is not being deleted. So a user
// who may write only the status cannot skip the handlers of a deletion, or any handler of an object that was handled
// before (deviation D-status-rights; Kopf always trusts the status). Therefore all records of the status must be moved
// to annotations at once, before any other annotation is written.
type Smart struct {
	// Prefix, TouchKey, Verbose and WithoutV1 are the fields of [Annotations].
	Prefix, TouchKey   string
	Verbose, WithoutV1 bool
	// Name, Field and TouchField are the fields of [Status]. TouchField has no effect.
	Name              string
	Field, TouchField diff.Path
}

var _ Storage = Smart{}

// Fetch returns the record of the annotation, or else that of the status if the status counts. A status that does not
// count is not reported as malformed either.
func (s Smart) Fetch(body map[string]any, id string) (*Record, error) {
	written := s.WrittenStorage()
	if record, err := written.Fetch(body, id); err != nil || record != nil {
		return record, err
	}
	if deleting, _ := diff.ResolvePath(body, deletionTimestampPath); deleting != nil ||
		written.hasOtherAnnotations(body, id) {
		return nil, nil
	}
	return s.statusStorage().Fetch(body, id)
}

// deletionTimestampPath is the path of the field that is set while the object is being deleted.
var deletionTimestampPath = diff.Path{"metadata", "deletionTimestamp"}

// Clear removes the annotations and the status field.
func (s Smart) Clear(essence map[string]any) map[string]any {
	return s.statusStorage().Clear(s.WrittenStorage().Clear(essence))
}

// Store writes the annotation.
func (s Smart) Store(patch, body map[string]any, id string, record Record) error {
	return s.WrittenStorage().Store(patch, body, id, record)
}

// Purge removes the record from the annotations and from the status.
func (s Smart) Purge(patch, body map[string]any, id string) {
	s.WrittenStorage().Purge(patch, body, id)
	s.statusStorage().Purge(patch, body, id)
}

// Touch writes the touch annotation.
func (s Smart) Touch(patch, body map[string]any, value *string) {
	s.WrittenStorage().Touch(patch, body, value)
}

// WrittenStorage returns the storage of the annotations. Records that it does not have are only in the status.
func (s Smart) WrittenStorage() Annotations {
	return Annotations{Prefix: s.Prefix, TouchKey: s.TouchKey, Verbose: s.Verbose, WithoutV1: s.WithoutV1}
}

// statusStorage returns the storage of the status, which is never written.
func (s Smart) statusStorage() Status {
	return Status{Name: s.Name, Field: s.Field, TouchField: s.TouchField, NoWrite: true}
}
