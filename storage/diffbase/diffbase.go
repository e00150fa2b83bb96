package diffbase

import (
	"errors"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Essence is an object without the fields that the system manages: the top-level mapping of its JSON, as input for
// [diff.Compute]. It shares values with the object from which it was built, so it must not be modified.
type Essence = map[string]any

// A Storage builds essences, and keeps the last-handled one on the object. Kopf: DiffBaseStorage.
//
// The body parameters are the JSON of the whole object, and must not be modified.
type Storage interface {
	// Build returns the essence of the object, which is never nil. It includes the extra fields, which are those that
	// handlers select, even if they belong to the metadata or the status. It returns an error if an extra field leads
	// through a value that is not a mapping, including a null.
	//
	// Before two essences are compared, the progress storage must clear both of them, the built one and the fetched
	// one.
	Build(body map[string]any, extra []diff.Path) (Essence, error)

	// Fetch returns the last-handled essence, and nil if the object was never handled. If the stored value cannot be
	// decoded, it returns a [*MalformedError].
	Fetch(body map[string]any) (Essence, error)

	// Store adds the essence, as the last-handled one, to a merge-patch of the object in place. It returns an error if
	// the essence is nil or not JSON, or if the patch has a value that is not a mapping in place of a parent.
	Store(patch, body map[string]any, essence Essence) error
}

// MalformedError is the error of a diff-base that cannot be decoded: it is not JSON, or not an object. The operator
// then handles only the deletion of the object, until a user repairs or removes the diff-base.
type MalformedError struct {
	// Where is the place on the object, such as "annotation kopf.zalando.org/last-handled-configuration".
	Where string
	// Err is the reason.
	Err error
}

// Error returns the place and the reason, which may quote the beginning of the stored value.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed last-handled configuration in %s: %s", e.Where, storage.TextExcerpt(e.Err.Error()))
}

// Unwrap returns the reason.
func (e *MalformedError) Unwrap() error {
	return e.Err
}

// errNoEssence is the error of storing nil, which is a bug of the caller.
var errNoEssence = errors.New("there is no essence to be stored; an empty one is a mapping, not nil")

// encodeEssence returns the text that storages keep in an annotation or in the status.
func encodeEssence(essence Essence) (string, error) {
	if essence == nil {
		return "", errNoEssence
	}
	return asciijson.Marshal(essence)
}

// Multi combines several storages: its essences do not have the keys of any of them, it stores into all of them, and it
// fetches from the first one that has an essence. Without storages, nothing is stored. Kopf: MultiDiffBaseStorage.
type Multi []Storage

var _ Storage = Multi(nil)

// Build builds an essence of the object, and then lets each storage build an essence of the previous result, as if that
// were an object. Essences do not have a kind, so the storages do not detect replica sets there.
func (m Multi) Build(body map[string]any, extra []diff.Path) (Essence, error) {
	essence, err := buildEssence(body, extra, nil)
	for _, storage := range m {
		if err != nil {
			return nil, err
		}
		essence, err = storage.Build(essence, extra)
	}
	return essence, err
}

// Fetch returns the essence of the first storage that has one. A malformed essence ends the search with its error.
func (m Multi) Fetch(body map[string]any) (Essence, error) { return m.fetchLikely(body, nil) }

// fetchLikely does the work of Fetch, with a likely essence or nil: see [FetchLikely].
func (m Multi) fetchLikely(body map[string]any, likely Essence) (Essence, error) {
	for _, storage := range m {
		if essence, err := FetchLikely(storage, body, likely); err != nil || essence != nil {
			return essence, err
		}
	}
	return nil, nil
}

// FetchLikely fetches the essence from a storage. If the stored text is the encoding of the likely essence, it returns
// the likely essence itself and decodes nothing: most objects did not change since they were handled. This applies to
// [Annotations] and to those inside of a [Multi]; other storages, including types that embed Annotations, are called as
// usual.
func FetchLikely(from Storage, body map[string]any, likely Essence) (Essence, error) {
	switch from := from.(type) {
	case Annotations:
		return from.fetchLikely(body, likely)
	case Multi:
		return from.fetchLikely(body, likely)
	}
	return from.Fetch(body)
}

// Store stores the essence in all of the storages.
func (m Multi) Store(patch, body map[string]any, essence Essence) error {
	for _, storage := range m {
		if err := storage.Store(patch, body, essence); err != nil {
			return err
		}
	}
	return nil
}
