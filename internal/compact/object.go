package compact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// CachedObject is one state of one object. It is immutable, so its methods may be called concurrently.
type CachedObject struct {
	// keyMetadata has the metadata that the engine needs at every event, concatenated in one string. A substring of it,
	// such as the uid, keeps the whole string in memory; therefore the rest of the object is not part of it.
	keyMetadata                               string
	nameEnd, namespaceEnd, uidEnd, versionEnd uint32 // where each part ends in known; the next one begins there
	packedContent                             string // the compressed JSON text or protobuf message
	deleting, endsListing                     bool
	form                                      *packedForm
}

// packedForm describes how objects are encoded and compressed. A nil form means JSON without a dictionary.
type packedForm struct {
	kind       *MessageKind // nil for JSON
	dictionary *s2.Dict
}

var (
	_ runtime.Object            = (*CachedObject)(nil)
	_ metav1.ObjectMetaAccessor = (*CachedObject)(nil)
)

// NewFromBody encodes a decoded object and packs it.
func NewFromBody(body map[string]any) (*CachedObject, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding an object: %w", err)
	}
	return New(text, metav1.TypeMeta{})
}

// NewFromOpened packs an opened object. If its JSON text is available, the object is not encoded again.
func NewFromOpened(opened *jsontext.LazyObject) (*CachedObject, error) {
	if text := opened.Text(); text != nil {
		return New(text, metav1.TypeMeta{})
	}
	body, err := opened.Value()
	if err != nil {
		return nil, err
	}
	return NewFromBody(body)
}

// GetName returns metadata.name.
func (o *CachedObject) GetName() string { return o.keyMetadata[:o.nameEnd] }

// GetNamespace returns metadata.namespace.
func (o *CachedObject) GetNamespace() string { return o.keyMetadata[o.nameEnd:o.namespaceEnd] }

// GetUID returns metadata.uid.
func (o *CachedObject) GetUID() types.UID { return types.UID(o.keyMetadata[o.namespaceEnd:o.uidEnd]) }

// GetResourceVersion returns metadata.resourceVersion.
func (o *CachedObject) GetResourceVersion() string { return o.keyMetadata[o.uidEnd:o.versionEnd] }

// ObjectKey returns the namespace and name.
func (o *CachedObject) ObjectKey() types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// IsDeleting reports whether the object has a metadata.deletionTimestamp.
func (o *CachedObject) IsDeleting() bool { return o.deleting }

// Text returns the JSON of the object without metadata.managedFields. The caller may modify the result.
func (o *CachedObject) Text() ([]byte, error) {
	unpacked, err := o.unpackContent()
	if err != nil || o.messageKind() == nil {
		return unpacked, err
	}
	return o.openMessage(unpacked).JSON()
}

// unpackContent returns the uncompressed JSON text or protobuf message. The result is a copy.
func (o *CachedObject) unpackContent() ([]byte, error) {
	unpacked, err := o.decompressContent()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", o.ObjectKey(), err)
	}
	return unpacked, nil
}

// messageKind returns the kind of a packed protobuf message, and nil for JSON.
func (o *CachedObject) messageKind() *MessageKind {
	if o.form == nil {
		return nil
	}
	return o.form.kind
}

// packedDictionary returns the dictionary of the packed form, and nil if it does not need one.
func (o *CachedObject) packedDictionary() *s2.Dict {
	if o.form == nil {
		return nil
	}
	return o.form.dictionary
}

// openMessage returns a reader of the unpacked message.
func (o *CachedObject) openMessage(data []byte) *message {
	return &message{kind: o.messageKind(), key: o.ObjectKey(), data: data}
}

// Open unpacks the object for several readers, who can read its text or its decoded form. Its values are shared, so
// readers must not modify them.
func (o *CachedObject) Open() (*jsontext.LazyObject, error) {
	unpacked, err := o.unpackContent()
	switch {
	case err != nil:
		return nil, err
	case o.messageKind() != nil:
		return jsontext.NewFromSource(o.openMessage(unpacked)), nil
	}
	return jsontext.New(unpacked), nil
}

// MayMention reports whether any of the words can occur in the object, as a string or as part of one. It does not
// decode the object. If the object cannot be unpacked, it returns true, so that the caller decodes the object and gets
// the error.
func (o *CachedObject) MayMention(words ...string) bool {
	unpacked, err := o.unpackContent()
	return err != nil || slices.ContainsFunc(words, func(word string) bool {
		return bytes.Contains(unpacked, []byte(word))
	})
}

// Body returns the decoded object, with integers as int64. The caller may modify the result.
func (o *CachedObject) Body() (map[string]any, error) {
	opened, err := o.Open()
	if err != nil {
		return nil, err
	}
	body, err := opened.Value()
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.ObjectKey(), err)
	}
	return body, nil
}

// Unstructured returns Body as an unstructured object of apimachinery.
func (o *CachedObject) Unstructured() (*unstructured.Unstructured, error) {
	body, err := o.Body()
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: body}, nil
}

// GetObjectKind returns an empty kind, because a cache has objects of one kind only.
func (o *CachedObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the object itself, because it is immutable.
func (o *CachedObject) DeepCopyObject() runtime.Object { return o }

// GetObjectMeta returns the metadata by which client-go identifies an object and detects the end of a listing. Other
// metadata is omitted. client-go calls it several times for every event, so it does not allocate.
func (o *CachedObject) GetObjectMeta() metav1.Object { return (*metadata)(o) }

// metadata gives access to the metadata that is known without unpacking the object. It is immutable: setters have no
// effect.
type metadata CachedObject

var _ metav1.Object = (*metadata)(nil)

// asObject returns the object that the metadata belongs to.
func (m *metadata) asObject() *CachedObject { return (*CachedObject)(m) }

func (m *metadata) GetName() string            { return m.asObject().GetName() }
func (m *metadata) GetNamespace() string       { return m.asObject().GetNamespace() }
func (m *metadata) GetUID() types.UID          { return m.asObject().GetUID() }
func (m *metadata) GetResourceVersion() string { return m.asObject().GetResourceVersion() }

// GetAnnotations returns the annotation that ends a listing, if the object has it, and no others.
func (m *metadata) GetAnnotations() map[string]string {
	if m.endsListing {
		return map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return nil
}

func (*metadata) GetGenerateName() string                       { return "" }
func (*metadata) GetGeneration() int64                          { return 0 }
func (*metadata) GetSelfLink() string                           { return "" }
func (*metadata) GetCreationTimestamp() (none metav1.Time)      { return none }
func (*metadata) GetDeletionTimestamp() *metav1.Time            { return nil }
func (*metadata) GetDeletionGracePeriodSeconds() *int64         { return nil }
func (*metadata) GetLabels() map[string]string                  { return nil }
func (*metadata) GetFinalizers() []string                       { return nil }
func (*metadata) GetOwnerReferences() []metav1.OwnerReference   { return nil }
func (*metadata) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }
func (*metadata) SetName(string)                                {}
func (*metadata) SetNamespace(string)                           {}
func (*metadata) SetUID(types.UID)                              {}
func (*metadata) SetResourceVersion(string)                     {}
func (*metadata) SetAnnotations(map[string]string)              {}
func (*metadata) SetGenerateName(string)                        {}
func (*metadata) SetGeneration(int64)                           {}
func (*metadata) SetSelfLink(string)                            {}
func (*metadata) SetCreationTimestamp(metav1.Time)              {}
func (*metadata) SetDeletionTimestamp(*metav1.Time)             {}
func (*metadata) SetDeletionGracePeriodSeconds(*int64)          {}
func (*metadata) SetLabels(map[string]string)                   {}
func (*metadata) SetFinalizers([]string)                        {}
func (*metadata) SetOwnerReferences([]metav1.OwnerReference)    {}
func (*metadata) SetManagedFields([]metav1.ManagedFieldsEntry)  {}
