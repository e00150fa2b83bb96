package diffbase

import (
	"errors"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Essence is an object without what the system adds to it: the top-level mapping of its JSON, fit for [diff.Compute].
// It shares its inner values with the object that it was built from, and is to be read only, as that is.
type Essence = map[string]any

// A Storage builds essences, and keeps the last handled one on the object. Kopf: DiffBaseStorage.
//
// An object is given as its body: the JSON of the whole object, read only.
type Storage interface {
	// Build makes the essence of the object: never nil, however empty. The extra fields, which are those that handlers
	// look at, are in it even if they are of metadata or status. It is an error if one of them leads through something
	// else than a mapping, a null included.
	//
	// Essences to be compared must have been cleared by the progress storage, the built as well as the fetched ones.
	Build(body map[string]any, extra []diff.Path) (Essence, error)

	// Fetch reads the essence last handled; nil if the object was never handled. If something is there that cannot be
	// read, it is a [*MalformedError].
	Fetch(body map[string]any) (Essence, error)

	// Store adds the essence, as the one last handled, to a merge-patch of the object in place. It is an error if the
	// essence is nil or not JSON, or if the patch has something else than a mapping in the way.
	Store(patch, body map[string]any, essence Essence) error
}

// MalformedError says that nobody can read the diff-base of the object: it is text that is not JSON, or JSON that is
// not an object. An operator handles nothing but the deletion of such an object until somebody repairs or removes it.
type MalformedError struct {
	// Where is the place on the object, such as "annotation kopf.zalando.org/last-handled-configuration".
	Where string
	// Err is what is wrong with it.
	Err error
}

// Error names the place and the reason, which may quote what is there: the beginning of it.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed last-handled configuration in %s: %s", e.Where, storage.Excerpt(e.Err.Error()))
}

// Unwrap returns the reason.
func (e *MalformedError) Unwrap() error {
	return e.Err
}

var errNoEssence = errors.New("there is no essence to be stored; an empty one is a mapping, not nil")

// encode gives the text that storages keep, be it in an annotation or in the status.
func encode(essence Essence) (string, error) {
	if essence == nil {
		return "", errNoEssence
	}
	return asciijson.Marshal(essence)
}

// Multi is several storages at once: essences are without the own keys of all of them, are written to all of them, and
// are read from the first one that has any. Without storages, nothing is ever kept. Kopf: MultiDiffBaseStorage.
type Multi []Storage

var _ Storage = Multi(nil)

// Build builds an essence of the object, then lets each of the storages make its own one of the previous result, as if
// that were an object. As essences have no kind, the storages do not recognise replica sets there.
func (m Multi) Build(body map[string]any, extra []diff.Path) (Essence, error) {
	essence, err := build(body, extra, nil)
	for _, storage := range m {
		if err != nil {
			return nil, err
		}
		essence, err = storage.Build(essence, extra)
	}
	return essence, err
}

// Fetch reads from the first storage that has an essence. One that has a malformed one ends the search.
func (m Multi) Fetch(body map[string]any) (Essence, error) { return m.fetch(body, nil) }

func (m Multi) fetch(body map[string]any, likely Essence) (Essence, error) {
	for _, storage := range m {
		if essence, err := FetchLikely(storage, body, likely); err != nil || essence != nil {
			return essence, err
		}
	}
	return nil, nil
}

// FetchLikely fetches from a storage. If what it would read is the likely essence, as Annotations write that, it reads
// nothing, and gives the likely one itself. Other storages are asked as ever, those around Annotations as well.
func FetchLikely(from Storage, body map[string]any, likely Essence) (Essence, error) {
	switch from := from.(type) {
	case Annotations:
		return from.fetch(body, likely)
	case Multi:
		return from.fetch(body, likely)
	}
	return from.Fetch(body)
}

// Store writes to all of the storages.
func (m Multi) Store(patch, body map[string]any, essence Essence) error {
	for _, storage := range m {
		if err := storage.Store(patch, body, essence); err != nil {
			return err
		}
	}
	return nil
}
