package compact

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// The numbers of fields in messages. The first one of every object is its metadata.
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

var errNoMessage = errors.New("not a well-formed protobuf message")

// Message is New for the protobuf message of an object, without the envelope that says what it is.
func (p *Packer) Message(message []byte) (*Object, error) {
	o := Object{form: p.messages.Load()}
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.text = s.text[:0]
	readable := true
	whole := Fields(message, func(f Field) {
		if f.Number != fieldMetadata {
			s.text = append(s.text, f.Whole...)
			return
		}
		s.metadata, readable = o.readMessage(f.Value, s.metadata[:0])
		s.text = protowire.AppendTag(s.text, fieldMetadata, protowire.BytesType)
		s.text = protowire.AppendBytes(s.text, s.metadata)
	})
	if !whole || !readable {
		return nil, fmt.Errorf("reading an object: %w", errNoMessage)
	}
	p.pack(&o, s)
	return &o, nil
}

// readMessage takes what is kept beside the message, and appends the metadata without the managed fields.
func (o *Object) readMessage(metadata, to []byte) (kept []byte, whole bool) {
	var name, namespace, uid, version []byte
	whole = Fields(metadata, func(f Field) {
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
		to = append(to, f.Whole...)
	})
	o.know(name, namespace, uid, version)
	return to, whole
}

// endsListingOf is true for the annotation of the event that ends a listing in a stream.
func endsListingOf(annotation []byte) bool {
	var key, value string
	Fields(annotation, func(f Field) {
		switch f.Number {
		case fieldKey:
			key = string(f.Value)
		case fieldValue:
			value = string(f.Value)
		}
	})
	return key == metav1.InitialEventsAnnotationKey && value == "true"
}

// message is an object as one who looks at it has it: unpacked, and decoded into what is asked for.
type message struct {
	kind *Kind
	key  types.NamespacedName
	data []byte

	once     sync.Once
	metadata []byte
	err      error
}

var _ jsontext.Source = (*message)(nil)

// Into decodes into the Go type of the kind, and into no other.
func (m *message) Into(into any) bool {
	object, is := into.(readable)
	if !is || !m.kind.Is(reflect.TypeOf(into)) || object.Unmarshal(m.data) != nil {
		return false
	}
	object.GetObjectKind().SetGroupVersionKind(m.kind.of)
	return true
}

// JSON goes by way of the Go type, as the API server does.
func (m *message) JSON() ([]byte, error) {
	object := reflect.New(m.kind.typ).Interface()
	if !m.Into(object) {
		return nil, fmt.Errorf("decoding %s: %w", m.key, errNoMessage)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.key, err)
	}
	return text, nil
}

// Metadata is the JSON of nothing else.
func (m *message) Metadata() ([]byte, error) {
	m.once.Do(func() {
		var object metav1.PartialObjectMetadata // which has its metadata under the same number
		if err := object.Unmarshal(m.data); err != nil {
			m.err = fmt.Errorf("decoding the metadata of %s: %w", m.key, err)
			return
		}
		m.metadata, m.err = json.Marshal(&object)
	})
	return m.metadata, m.err
}
