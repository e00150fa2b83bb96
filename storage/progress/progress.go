package progress

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage"
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

// MalformedError says that there is a record on the object, but what: text that is not JSON, JSON that is not an
// object, or a key of a wrong type. Such an object cannot be handled, except for its deletion, until somebody repairs
// or removes the place.
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
