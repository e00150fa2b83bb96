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

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Object is one state of one object. It never changes: any goroutine may use it.
type Object struct {
	// known is what the engine asks for at every event, in one place in memory. Whoever keeps a part of it, such as the
	// uid, keeps all, so the rest of the object is apart.
	known                         string
	name, namespace, uid, version uint32 // where each of them ends in it; the next one begins there
	packed                        string // the text, or the message
	deleting, endsListing         bool
	form                          *form
}

// form is how objects are packed. Nil is JSON without a dictionary.
type form struct {
	kind       *Kind // of messages; nil of JSON
	dictionary *s2.Dict
}

var (
	_ runtime.Object            = (*Object)(nil)
	_ metav1.ObjectMetaAccessor = (*Object)(nil)
)

// Of makes an object of its JSON form.
func Of(body map[string]any) (*Object, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding an object: %w", err)
	}
	return New(text, metav1.TypeMeta{})
}

// Pack makes an object of one that was opened, or decoded without ever having been one.
func Pack(opened *jsontext.Object) (*Object, error) {
	if text := opened.Text(); text != nil {
		return New(text, metav1.TypeMeta{})
	}
	body, err := opened.Value()
	if err != nil {
		return nil, err
	}
	return Of(body)
}

// GetName is metadata.name.
func (o *Object) GetName() string { return o.known[:o.name] }

// GetNamespace is metadata.namespace.
func (o *Object) GetNamespace() string { return o.known[o.name:o.namespace] }

// GetUID is metadata.uid.
func (o *Object) GetUID() types.UID { return types.UID(o.known[o.namespace:o.uid]) }

// GetResourceVersion is metadata.resourceVersion.
func (o *Object) GetResourceVersion() string { return o.known[o.uid:o.version] }

// Key is the name with the namespace.
func (o *Object) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Deleting tells whether there is a metadata.deletionTimestamp.
func (o *Object) Deleting() bool { return o.deleting }

// Text is the JSON of the object, without metadata.managedFields. It is the caller's own.
func (o *Object) Text() ([]byte, error) {
	unpacked, err := o.unpack()
	if err != nil || o.kind() == nil {
		return unpacked, err
	}
	return o.message(unpacked).JSON()
}

func (o *Object) unpack() ([]byte, error) {
	unpacked, err := o.decompress()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", o.Key(), err)
	}
	return unpacked, nil
}

// kind is nil of what is packed as JSON.
func (o *Object) kind() *Kind {
	if o.form == nil {
		return nil
	}
	return o.form.kind
}

// dictionary is nil of what is packed by itself.
func (o *Object) dictionary() *s2.Dict {
	if o.form == nil {
		return nil
	}
	return o.form.dictionary
}

func (o *Object) message(data []byte) *message {
	return &message{kind: o.kind(), key: o.Key(), data: data}
}

// Open gives the object to several who read it, be it as text or decoded. Its values are shared: none of them may
// modify them.
func (o *Object) Open() (*jsontext.Object, error) {
	unpacked, err := o.unpack()
	switch {
	case err != nil:
		return nil, err
	case o.kind() != nil:
		return jsontext.From(o.message(unpacked)), nil
	}
	return jsontext.New(unpacked), nil
}

// Mentions tells whether any of the words may be in the object, as a text or a part of one. It decodes nothing; of an
// object that cannot be unpacked it is true, so that whoever looks on is told.
func (o *Object) Mentions(words ...string) bool {
	unpacked, err := o.unpack()
	return err != nil || slices.ContainsFunc(words, func(word string) bool {
		return bytes.Contains(unpacked, []byte(word))
	})
}

// Body is the decoded object, with integers as int64. It is the caller's own.
func (o *Object) Body() (map[string]any, error) {
	opened, err := o.Open()
	if err != nil {
		return nil, err
	}
	body, err := opened.Value()
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.Key(), err)
	}
	return body, nil
}

// Unstructured is Body as apimachinery has it.
func (o *Object) Unstructured() (*unstructured.Unstructured, error) {
	body, err := o.Body()
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: body}, nil
}

// GetObjectKind knows nothing: a cache is of one kind.
func (o *Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject gives the object itself, as it never changes.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// GetObjectMeta has the metadata by which client-go finds an object, and the end of a listing; all else is left out.
// client-go asks for it several times with every event, so it is made of nothing.
func (o *Object) GetObjectMeta() metav1.Object { return (*metadata)(o) }

// metadata are those of an object, as far as they are known without unpacking it. They never change, so what sets
// something does nothing.
type metadata Object

var _ metav1.Object = (*metadata)(nil)

func (m *metadata) of() *Object { return (*Object)(m) }

func (m *metadata) GetName() string            { return m.of().GetName() }
func (m *metadata) GetNamespace() string       { return m.of().GetNamespace() }
func (m *metadata) GetUID() types.UID          { return m.of().GetUID() }
func (m *metadata) GetResourceVersion() string { return m.of().GetResourceVersion() }

// GetAnnotations has that of the end of a listing.
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
