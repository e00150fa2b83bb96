package diffbase

import (
	"cmp"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// Annotations keeps the essence in an annotation, as JSON in ASCII with a newline at the end. The zero value is Kopf's
// default storage: AnnotationsDiffBaseStorage.
type Annotations struct {
	// Prefix is that of the annotation's key: the operator's domain. Default: "kopf.zalando.org". For any other one,
	// the marker "<prefix>/kopf-managed" is written too. Kopf: prefix.
	Prefix string
	// Key is the rest of the annotation's key. Default: "last-handled-configuration". If it is too long for an
	// annotation, there are two of them, as [keys.Names] says. Kopf: key.
	Key string
	// IgnoredFields are removed from the essence, with the mappings that become empty by that: changes there are no
	// changes. They win over the extra fields. Kopf: ignored_fields.
	IgnoredFields []diff.Path
	// WithoutV1 switches off reading and writing of the annotations that Kopf used once. Kopf: v1=False.
	WithoutV1 bool
	// Bound is the annotation that names the uid of the object that the memory belongs to. If given, objects that keep
	// their memory apart from a copy of another object's have keys with their kind: see [keys.MarkBound]. Kopf: none.
	Bound string
}

var _ Storage = Annotations{}

// Build makes the essence without the own annotations: see [Storage].
func (a Annotations) Build(body map[string]any, extra []diff.Path) (Essence, error) {
	own := a.names(body)
	essence, err := build(body, extra, own)
	if err != nil {
		return nil, err
	}
	if essence, err = ignore(essence, a.IgnoredFields); err != nil {
		return nil, err
	}
	for _, name := range own {
		// Here again: an extra field may have brought them back. In metadata that is no mapping, there are none.
		if remaining, err := storage.Without(essence, []string{"metadata", "annotations", name}); err == nil {
			essence = remaining
		}
	}
	return storage.Trim(essence), nil
}

// Fetch reads the first of the annotations that is there: see [Storage]. A JSON null is as good as none.
func (a Annotations) Fetch(body map[string]any) (Essence, error) { return a.fetch(body, nil) }

// fetch is Fetch; see [FetchLikely].
func (a Annotations) fetch(body map[string]any, likely Essence) (Essence, error) {
	annotations, err := storage.Annotations(body)
	if err != nil {
		return nil, err
	}
	if len(annotations) == 0 {
		return nil, nil
	}
	for _, name := range a.names(body) {
		if likely != nil && isWritten(annotations[name], likely) {
			return likely, nil
		}
		essence, err := storage.Parse(annotations[name])
		if err != nil {
			return nil, &MalformedError{Where: "annotation " + name, Err: err}
		}
		if essence != nil {
			return essence, nil
		}
	}
	return nil, nil
}

// isWritten tells whether the annotation is what Store writes. What others write for the same essence may differ.
func isWritten(annotation any, essence Essence) bool {
	text, _ := annotation.(string)
	text, ended := strings.CutSuffix(text, "\n")
	return ended && asciijson.Writes(text, essence)
}

// Store writes all of the annotations, and the marker of the prefix if the object lacks it: see [Storage].
func (a Annotations) Store(patch, body map[string]any, essence Essence) error {
	text, err := encode(essence)
	if err != nil {
		return err
	}
	if err := storage.Annotate(patch, a.names(body), text+"\n"); err != nil {
		return err
	}
	if prefix := a.prefix(); keys.NeedsMarker(prefix) {
		return storage.AnnotateOnce(patch, body, keys.MarkerKey(prefix), keys.ManagedValue)
	}
	return nil
}

func (a Annotations) names(body map[string]any) []string {
	return keys.Names(a.prefix(), keys.MarkBound(body, a.Bound, cmp.Or(a.Key, keys.LastHandled)), !a.WithoutV1)
}

func (a Annotations) prefix() string {
	return cmp.Or(a.Prefix, keys.KopfPrefix)
}

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
