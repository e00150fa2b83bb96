package informers

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// These are the field numbers of the protobuf messages around objects: watch events, runtime.RawExtension,
// runtime.Unknown, runtime.TypeMeta, and lists.
const (
	fieldEventType, fieldEventObject protowire.Number = 1, 2
	fieldExtensionRaw                protowire.Number = 1

	fieldUnknownType, fieldUnknownRaw  protowire.Number = 1, 2
	fieldTypeVersion, fieldTypeKind    protowire.Number = 1, 2
	fieldListMetadata, fieldListObject protowire.Number = 1, 2
)

// envelope is the prefix of every protobuf answer of an API server.
var envelope = []byte{'k', '8', 's', 0}

var errNoMessage = errors.New("not a well-formed protobuf message")

// messageDecoder decodes protobuf answers without decoding the objects in them.
type messageDecoder struct{ packer *compact.Packer }

var _ runtime.Serializer = messageDecoder{}

// Identifier implements runtime.Encoder.
func (messageDecoder) Identifier() runtime.Identifier { return "compact messages" }

// Encode always fails, because an informer sends no objects.
func (messageDecoder) Encode(runtime.Object, io.Writer) error { return errEncodingUnsupported }

// Decode decodes the same answers as that of texts: a watch event, an object, a list, or a status.
func (d messageDecoder) Decode(
	data []byte, _ *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, is := into.(*metav1.WatchEvent); is {
		return event, nil, decodeEventMessage(data, event)
	}
	found, raw, whole := openEnvelope(data)
	if !whole {
		return nil, nil, fmt.Errorf("reading an answer of the API server: %w", errNoMessage)
	}
	// Only the requested kind, its list, and a status are expected.
	kind := d.packer.Kind().GroupVersionKind()
	switch found {
	case kind:
		object, err := d.packer.NewFromMessage(raw)
		return object, &found, err
	case kind.GroupVersion().WithKind(kind.Kind + "List"):
		page, err := d.decodeList(raw)
		return page, &found, err
	case schema.GroupVersionKind{Version: "v1", Kind: "Status"}:
		status := &metav1.Status{}
		err := status.Unmarshal(raw)
		return status, &found, err
	}
	return nil, nil, fmt.Errorf("reading an answer of the API server: it is a %s, and no %s", found, kind)
}

// decodeEventMessage decodes the type of a watch event, and keeps the bytes of its object.
func decodeEventMessage(data []byte, event *metav1.WatchEvent) error {
	// An event contains the object as a RawExtension, which in turn contains an envelope.
	inner := true
	whole := compact.EachField(data, func(f compact.MessageField) {
		switch f.Number {
		case fieldEventType:
			event.Type = string(f.Value)
		case fieldEventObject:
			inner = compact.EachField(f.Value, func(f compact.MessageField) {
				if f.Number == fieldExtensionRaw {
					event.Object.Raw = f.Value
				}
			})
		}
	})
	if !whole || !inner {
		return fmt.Errorf("reading an event of a watch: %w", errNoMessage)
	}
	return nil
}

// openEnvelope removes the envelope. It returns the type of the content and its bytes, and false if the message is
// malformed.
func openEnvelope(data []byte) (of schema.GroupVersionKind, raw []byte, whole bool) {
	var typ []byte
	// The envelope contains a runtime.Unknown message: the type, and the encoded object.
	data, enveloped := bytes.CutPrefix(data, envelope)
	whole = enveloped && compact.EachField(data, func(f compact.MessageField) {
		switch f.Number {
		case fieldUnknownType:
			typ = f.Value
		case fieldUnknownRaw:
			raw = f.Value
		}
	})
	var version, kind string
	told := compact.EachField(typ, func(f compact.MessageField) {
		switch f.Number {
		case fieldTypeVersion:
			version = string(f.Value)
		case fieldTypeKind:
			kind = string(f.Value)
		}
	})
	return schema.FromAPIVersionAndKind(version, kind), raw, whole && told
}

// decodeList decodes one page of a list.
func (d messageDecoder) decodeList(raw []byte) (*list, error) {
	page := &list{}
	var failed error
	whole := compact.EachField(raw, func(f compact.MessageField) {
		switch f.Number {
		case fieldListMetadata:
			failed = errors.Join(failed, page.metadata.Unmarshal(f.Value))
		case fieldListObject:
			// Items have no envelope: the list is of the requested kind.
			object, err := d.packer.NewFromMessage(f.Value)
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			page.Items = append(page.Items, object)
		}
	})
	if !whole {
		failed = errNoMessage
	}
	if failed != nil {
		return nil, fmt.Errorf("reading a list of %s: %w", d.packer.Kind().GroupVersionKind().Kind, failed)
	}
	return page, nil
}
