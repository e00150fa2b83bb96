package diffbase

import (
	"cmp"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Annotations stores the essence in an annotation, as JSON in ASCII with a newline at the end. The zero value is Kopf's
// default storage: AnnotationsDiffBaseStorage.
type Annotations struct {
	// Prefix is the prefix of the annotation's key: the operator's domain. Default: "kopf.zalando.org". With any other
	// prefix, the marker "<prefix>/kopf-managed" is written, too. Kopf: prefix.
	Prefix string
	// Key is the name part of the annotation's key. Default: "last-handled-configuration". If it is too long for an
	// annotation, there are two annotations, as described at [keys.AnnotationKeys]. Kopf: key.
	Key string
	// IgnoredFields are removed from the essence, together with the mappings that become empty, so changes of them are
	// not handled. They take precedence over the extra fields. Kopf: ignored_fields.
	IgnoredFields []diff.Path
	// WithoutV1 disables reading and writing of the annotations that old versions of Kopf used. Kopf: v1=False.
	WithoutV1 bool
	// Bound is the annotation with the uid of the object to which the memory belongs. If it is set, an object whose
	// memory must be distinguished from a copy of another object's memory uses keys with its kind: see
	// [keys.MarkForObject]. Kopf does not have it.
	Bound string
}

var _ Storage = Annotations{}

// Build returns the essence without the storage's own annotations: see [Storage].
func (a Annotations) Build(body map[string]any, extra []diff.Path) (Essence, error) {
	own := a.annotationNames(body)
	essence, err := buildEssence(body, extra, own)
	if err != nil {
		return nil, err
	}
	if essence, err = removeIgnoredFields(essence, a.IgnoredFields); err != nil {
		return nil, err
	}
	for _, name := range own {
		// They are removed again, because an extra field may have restored them. If the metadata is not a mapping, it
		// does not have annotations, so the error is ignored.
		if remaining, err := storage.WithoutValue(essence, []string{"metadata", "annotations", name}); err == nil {
			essence = remaining
		}
	}
	return storage.TrimEssence(essence), nil
}

// Fetch reads the first of the annotations that exists: see [Storage]. The text "null" counts as absent.
func (a Annotations) Fetch(body map[string]any) (Essence, error) { return a.fetchLikely(body, nil) }

// fetchLikely does the work of Fetch, with a likely essence or nil: see [FetchLikely].
func (a Annotations) fetchLikely(body map[string]any, likely Essence) (Essence, error) {
	annotations, err := storage.AnnotationsOf(body)
	if err != nil {
		return nil, err
	}
	if len(annotations) == 0 {
		return nil, nil
	}
	for _, name := range a.annotationNames(body) {
		if likely != nil && isOwnEncoding(annotations[name], likely) {
			return likely, nil
		}
		essence, err := storage.ParseObject(annotations[name])
		if err != nil {
			return nil, &MalformedError{Where: "annotation " + name, Err: err}
		}
		if essence != nil {
			return essence, nil
		}
	}
	return nil, nil
}

// isOwnEncoding reports whether the annotation is exactly the text that Store writes for the essence. Other operators
// can write the same essence differently; it is decoded then.
func isOwnEncoding(annotation any, essence Essence) bool {
	text, _ := annotation.(string)
	text, ended := strings.CutSuffix(text, "\n")
	return ended && asciijson.IsEncodingOf(text, essence)
}

// Store writes all of the annotations, and the marker of the prefix if the object does not have it: see [Storage].
func (a Annotations) Store(patch, body map[string]any, essence Essence) error {
	text, err := encodeEssence(essence)
	if err != nil {
		return err
	}
	if err := storage.SetAnnotations(patch, a.annotationNames(body), text+"\n"); err != nil {
		return err
	}
	if prefix := a.prefixOrDefault(); keys.NeedsMarker(prefix) {
		return storage.SetAnnotationOnce(patch, body, keys.MarkerKey(prefix), keys.ManagedValue)
	}
	return nil
}

// annotationNames returns the full keys of the annotations for this object, the preferred one first.
func (a Annotations) annotationNames(body map[string]any) []string {
	return keys.AnnotationKeysOn(body, a.prefixOrDefault(), a.Bound, cmp.Or(a.Key, keys.LastHandled), !a.WithoutV1)
}

// prefixOrDefault returns the prefix with its default.
func (a Annotations) prefixOrDefault() string {
	return cmp.Or(a.Prefix, keys.KopfPrefix)
}

// Status stores the essence in a field of the object, usually of its status, as a string of JSON in ASCII. The CRD must
// allow that field. Otherwise the API server drops it, and the object is always handled as a new one. Kopf:
// StatusDiffBaseStorage.
type Status struct {
	// Name is the operator's name in the default field. A name with dots makes several keys. Default: "kopf". Kopf:
	// name.
	Name string
	// Field is the path of the essence. Default: status.<name>.last-handled-configuration. Kopf: field.
	Field diff.Path
	// IgnoredFields are removed from the essence, together with the mappings that become empty, so changes of them are
	// not handled. They take precedence over the extra fields. Kopf: ignored_fields.
	IgnoredFields []diff.Path
}

var _ Storage = Status{}

// Build returns the essence without the storage's own field: see [Storage]. It also returns an error if the essence has
// a value that is not a mapping on the path to that field.
func (s Status) Build(body map[string]any, extra []diff.Path) (Essence, error) {
	essence, err := buildEssence(body, extra, nil)
	if err != nil {
		return nil, err
	}
	if essence, err = removeIgnoredFields(essence, s.IgnoredFields); err != nil {
		return nil, err
	}
	return storage.WithoutValue(essence, s.fieldOrDefault())
}

// Fetch reads the field: see [Storage]. The essence counts as absent if the path leads through a value that is not a
// mapping, if the field is null, or if its text is "null".
func (s Status) Fetch(body map[string]any) (Essence, error) {
	field := s.fieldOrDefault()
	value, _ := diff.ResolvePath(body, field)
	essence, err := storage.ParseObject(value)
	if err != nil {
		return nil, &MalformedError{Where: "field " + field.String(), Err: err}
	}
	return essence, nil
}

// Store writes the field: see [Storage].
func (s Status) Store(patch, _ map[string]any, essence Essence) error {
	text, err := encodeEssence(essence)
	if err != nil {
		return err
	}
	return storage.PutValue(patch, s.fieldOrDefault(), text)
}

// fieldOrDefault returns the path of the essence with its default.
func (s Status) fieldOrDefault() diff.Path {
	if len(s.Field) > 0 {
		return s.Field
	}
	return diff.ParsePath("status." + cmp.Or(s.Name, "kopf") + ".last-handled-configuration")
}
