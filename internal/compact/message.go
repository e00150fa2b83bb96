package compact

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// The field numbers of protobuf messages in Kubernetes. The first field of every object is its metadata.
const (
	fieldMetadata protowire.Number = 1

	fieldName              protowire.Number = 1
	fieldNamespace         protowire.Number = 3
	fieldUID               protowire.Number = 5
	fieldResourceVersion   protowire.Number = 6
	fieldDeletionTimestamp protowire.Number = 9
	fieldAnnotations       protowire.Number = 12
	fieldManagedFields     protowire.Number = 17

	fieldKey, fieldValue protowire.Number = 1, 2
)

// errNoMessage is the error of a malformed message.
var errNoMessage = errors.New("not a well-formed protobuf message")

// NewFromMessage returns an object for a protobuf message. The message is without the envelope that names its type.
func (p *Packer) NewFromMessage(message []byte) (*CachedObject, error) {
	o := CachedObject{form: p.messageForm.Load()}
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.text = s.text[:0]
	readable := true
	whole := EachField(message, func(f MessageField) {
		// All other fields are copied without change.
		if f.Number != fieldMetadata {
			s.text = append(s.text, f.Encoded...)
			return
		}
		s.metadata, readable = o.readMessageMetadata(f.Value, s.metadata[:0])
		// The metadata is written again, because its length changes without the managed fields.
		s.text = protowire.AppendTag(s.text, fieldMetadata, protowire.BytesType)
		s.text = protowire.AppendBytes(s.text, s.metadata)
	})
	if !whole || !readable {
		return nil, fmt.Errorf("reading an object: %w", errNoMessage)
	}
	p.packObject(&o, s)
	return &o, nil
}

// readMessageMetadata stores the metadata that is kept outside of the compressed message, and appends the metadata
// without the managed fields.
func (o *CachedObject) readMessageMetadata(metadata, to []byte) (kept []byte, whole bool) {
	var name, namespace, uid, version []byte
	whole = EachField(metadata, func(f MessageField) {
		switch f.Number {
		case fieldName:
			name = f.Value
		case fieldNamespace:
			namespace = f.Value
		case fieldUID:
			uid = f.Value
		case fieldResourceVersion:
			version = f.Value
		case fieldDeletionTimestamp:
			o.deleting = true
		case fieldAnnotations:
			o.endsListing = o.endsListing || endsListingOf(f.Value)
		case fieldManagedFields:
			return
		}
		to = append(to, f.Encoded...)
	})
	o.setKeyMetadata(name, namespace, uid, version)
	return to, whole
}

// endsListingOf reports whether an annotation marks the event that ends the listing of a streaming list.
func endsListingOf(annotation []byte) bool {
	var key, value string
	EachField(annotation, func(f MessageField) {
		switch f.Number {
		case fieldKey:
			key = string(f.Value)
		case fieldValue:
			value = string(f.Value)
		}
	})
	return key == metav1.InitialEventsAnnotationKey && value == "true"
}

// message is an unpacked object for its readers. It decodes the object into the requested form.
type message struct {
	kind *MessageKind
	key  types.NamespacedName
	data []byte

	once     sync.Once // for the metadata and its error
	metadata []byte
	err      error
}

var _ jsontext.ObjectSource = (*message)(nil)

// DecodeInto decodes the message into the Go type of the kind. It returns false for any other type.
func (m *message) DecodeInto(into any) bool {
	object, is := into.(protobufObject)
	// Decoding into the type of another kind could succeed, with wrong values.
	if !is || !m.kind.MatchesType(reflect.TypeOf(into)) || object.Unmarshal(m.data) != nil {
		return false
	}
	// The message does not have the API version and kind, which are in its envelope.
	object.GetObjectKind().SetGroupVersionKind(m.kind.gvk)
	return true
}

// JSON converts the message by means of the Go type, as the API server does.
func (m *message) JSON() ([]byte, error) {
	object := reflect.New(m.kind.goType).Interface()
	if !m.DecodeInto(object) {
		return nil, fmt.Errorf("decoding %s: %w", m.key, errNoMessage)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.key, err)
	}
	return text, nil
}

// MetadataJSON returns the JSON of the metadata alone, which is made only once.
func (m *message) MetadataJSON() ([]byte, error) {
	m.once.Do(func() {
		// This type has its metadata under the same number, and skips the other fields.
		var object metav1.PartialObjectMetadata
		if err := object.Unmarshal(m.data); err != nil {
			m.err = fmt.Errorf("decoding the metadata of %s: %w", m.key, err)
			return
		}
		m.metadata, m.err = json.Marshal(&object)
	})
	return m.metadata, m.err
}

// MessageKind is a kind whose objects have a protobuf form, such as the kinds that are built into Kubernetes.
type MessageKind struct {
	goType reflect.Type // the struct of its objects
	gvk    schema.GroupVersionKind
}

// protobufObject is implemented by the Go types of such kinds.
type protobufObject interface {
	runtime.Object
	Unmarshal(message []byte) error
}

// KindOf returns the kind if it is in the scheme and its objects have a protobuf form with the layout of Kubernetes.
// Otherwise, it returns nil.
func KindOf(scheme *runtime.Scheme, of schema.GroupVersionKind) *MessageKind {
	object, err := scheme.New(of)
	if err != nil {
		return nil
	}
	if _, is := object.(protobufObject); !is {
		return nil
	}
	// A user's type that embeds a type of Kubernetes inherits its methods, which ignore the additional fields. So the
	// metadata must be a direct field with the usual tag.
	typ := reflect.TypeOf(object).Elem()
	if typ.Kind() != reflect.Struct || !hasTaggedField(typ, reflect.TypeFor[metav1.ObjectMeta](), "bytes,1,") {
		return nil
	}
	return &MessageKind{goType: typ, gvk: of}
}

// hasTaggedField reports whether the type itself declares this field, with a protobuf tag that has the prefix tag.
func hasTaggedField(typ, field reflect.Type, tag string) bool {
	found, is := typ.FieldByName(field.Name())
	return is && len(found.Index) == 1 && found.Type == field && strings.HasPrefix(found.Tag.Get("protobuf"), tag)
}

// MatchesType reports whether a Go type, or a pointer to it, is the type of the kind's objects. It is false for a nil
// kind.
func (k *MessageKind) MatchesType(typ reflect.Type) bool {
	if k == nil || typ == nil {
		return false
	}
	return typ == k.goType || typ.Kind() == reflect.Pointer && typ.Elem() == k.goType
}

// GroupVersionKind returns the API version and name of the kind.
func (k *MessageKind) GroupVersionKind() schema.GroupVersionKind { return k.gvk }

// MessageField is one field of a protobuf message. Its slices are parts of the message.
type MessageField struct {
	Number protowire.Number
	// Value is the content of strings, bytes and nested messages. It is nil for other types.
	Value []byte
	// Encoded is the complete field with its tag.
	Encoded []byte
}

// EachField calls show for every field of a protobuf message in their order. It returns false where the message is
// malformed, and stops there. It does not check the values of fields.
func EachField(message []byte, show func(MessageField)) (whole bool) {
	for len(message) > 0 {
		number, wire, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, wire, message[tag:])
		if size < 0 {
			return false
		}
		f := MessageField{Number: number, Encoded: message[:tag+size]}
		if wire == protowire.BytesType {
			f.Value, _ = protowire.ConsumeBytes(message[tag:])
		}
		show(f)
		message = message[tag+size:]
	}
	return true
}
