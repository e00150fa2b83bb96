package informers

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

var errMalformed = errors.New("not a well-formed JSON object")

// textDecoder decodes JSON answers without decoding the objects in them.
//
// If bare is set, it is the type of all objects, and only their metadata is kept, even if the API server has sent whole
// objects. If whole is set and returns false for the metadata of an object, only the identity of that object is kept.
type textDecoder struct {
	packer       *compact.Packer
	metadataType *metav1.TypeMeta
	keepsWhole   func(metadata []byte) bool
}

var _ runtime.Serializer = textDecoder{}

// Identifier implements runtime.Encoder. Identifiers matter for encoders with a cache only.
func (textDecoder) Identifier() runtime.Identifier { return "compact texts" }

// Encode always fails, because an informer sends no objects.
func (textDecoder) Encode(runtime.Object, io.Writer) error { return errEncodingUnsupported }

// Decode decodes a watch event, an object, a list of objects, or a status. The object of an event stays undecoded: the
// watch passes its bytes to Decode again.
func (d textDecoder) Decode(
	data []byte, _ *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, is := into.(*metav1.WatchEvent); is {
		return event, nil, decodeEvent(data, event)
	}
	var a answer
	// Find the type without decoding the rest of the answer.
	if !jsontext.EachMember(data, a.addMember) {
		return nil, nil, fmt.Errorf("reading an answer of the API server: %w", errMalformed)
	}
	// Callers need the type, too, as in other serializers.
	found := schema.FromAPIVersionAndKind(a.version, a.kind)
	// A status is the answer of a refused request; the caller turns it into an error.
	switch {
	case a.kind == "Status" && a.version == "v1":
		status := &metav1.Status{}
		err := kjson.UnmarshalCaseSensitivePreserveInts(data, status)
		return status, &found, err
	case a.isList():
		list, err := a.decodeList(d)
		return list, &found, err
	default:
		object, err := d.packObject(data, metav1.TypeMeta{})
		return object, &found, err
	}
}

// packObject makes a compact object of its JSON text. The type is used for items of a list, which do not contain their
// own type.
func (d textDecoder) packObject(text []byte, typ metav1.TypeMeta) (*compact.CachedObject, error) {
	// Without a fixed type, the object is kept, or reduced to its identity.
	if d.metadataType == nil {
		if d.keepsWhole != nil {
			if reduced := d.reduceToIdentity(text); reduced != nil {
				return compact.New(reduced, typ) // not packed with the dictionary, which is made for whole objects
			}
		}
		return d.packer.New(text, typ)
	}
	// Keep the metadata only. An object without metadata gets empty ones.
	metadata := []byte("{}")
	// The value of metadata is copied as text: it is never decoded here.
	whole := jsontext.EachMember(text, func(m jsontext.RawMember) {
		if string(m.Key) == "metadata" {
			metadata = m.Value
		}
	})
	if !whole {
		return nil, fmt.Errorf("reading the metadata of an object: %w", errMalformed)
	}
	return d.packer.New(slices.Concat([]byte(`{"metadata":`), metadata, []byte("}")), *d.metadataType)
}

// reduceToIdentity returns the object with only its type and identity, or nil if the whole object is kept.
func (d textDecoder) reduceToIdentity(text []byte) []byte {
	kept, metadata := []byte{'{'}, []byte(nil)
	isWhole := jsontext.EachMember(text, func(m jsontext.RawMember) {
		switch string(m.Key) {
		case "apiVersion", "kind":
			kept = appendMember(kept, m)
		case "metadata":
			metadata = m.Value
		}
	})
	// Keep the object as it is: it is malformed, has no metadata, or is needed as a whole.
	if !isWhole || metadata == nil || d.keepsWhole(metadata) {
		return nil
	}
	// The fields of the identity are those that the engine needs to find, compare and order objects.
	identity, hasName := []byte{'{'}, false
	// Copy the fields of the identity. All other metadata, such as managedFields, are dropped.
	isWhole = jsontext.EachMember(metadata, func(m jsontext.RawMember) {
		switch string(m.Key) {
		case "name", "namespace", "uid", "resourceVersion", "deletionTimestamp":
			identity = appendMember(identity, m)
			hasName = hasName || string(m.Key) == "name"
		}
	})
	if !isWhole || !hasName {
		// The text is malformed, which the caller reports; or it is the bookmark that ends a streamed list, and must
		// keep its annotation.
		return nil
	}
	identity = append(identity, '}')
	return append(appendMember(kept, jsontext.RawMember{Key: []byte("metadata"), Value: identity}), '}')
}

// appendMember appends a member to a JSON object whose closing brace is still missing.
func appendMember(to []byte, m jsontext.RawMember) []byte {
	if to[len(to)-1] != '{' {
		to = append(to, ',')
	}
	return slices.Concat(to, []byte{'"'}, m.Key, []byte(`":`), m.Value)
}

// decodeEvent decodes the type of a watch event, and keeps the bytes of its object.
func decodeEvent(data []byte, event *metav1.WatchEvent) error {
	whole := jsontext.EachMember(data, func(m jsontext.RawMember) {
		switch string(m.Key) {
		case "type":
			_ = kjson.UnmarshalCaseSensitivePreserveInts(m.Value, &event.Type)
		case "object":
			// The bytes are not copied: the watch decodes them before it reads the next event.
			event.Object.Raw = m.Value
		}
	})
	if !whole {
		return fmt.Errorf("reading an event of a watch: %w", errMalformed)
	}
	return nil
}

// answer holds the parts of an API server's answer that determine how to decode it.
type answer struct {
	kind, version   string
	metadata, items []byte
}

// addMember collects the members of the answer. A malformed kind or version stays empty, and the answer is then decoded
// as an object, which fails with an error of its own.
func (a *answer) addMember(m jsontext.RawMember) {
	switch string(m.Key) {
	case "kind":
		_ = kjson.UnmarshalCaseSensitivePreserveInts(m.Value, &a.kind)
	case "apiVersion":
		_ = kjson.UnmarshalCaseSensitivePreserveInts(m.Value, &a.version)
	case "metadata":
		a.metadata = m.Value
	case "items":
		a.items = m.Value
	}
}

// isList reports whether the answer is a list. An object of a kind such as ShoppingList has a name, and is not a list.
func (a *answer) isList() bool {
	return a.items != nil && strings.HasSuffix(a.kind, "List") && jsontext.New(a.metadata).StringAt("name") == ""
}

// list is one page of a list.
type list struct {
	metadata metav1.ListMeta
	Items    []*compact.CachedObject // client-go finds the items by this field name
}

var (
	_ runtime.Object          = (*list)(nil)
	_ metav1.ListMetaAccessor = (*list)(nil)
)

// decodeList decodes one page of a list. An item without a type gets the type of the list.
func (a *answer) decodeList(d textDecoder) (*list, error) {
	// The metadata of a list are small, so they are decoded completely.
	page := &list{}
	if a.metadata != nil {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(a.metadata, &page.metadata); err != nil {
			return nil, fmt.Errorf("reading the metadata of a %s: %w", a.kind, err)
		}
	}
	of := metav1.TypeMeta{APIVersion: a.version, Kind: strings.TrimSuffix(a.kind, "List")}
	var failed error
	// Collect all errors: one malformed item must not hide the others.
	whole := jsontext.EachElement(a.items, func(m jsontext.RawMember) {
		// Pack each item at once: only the packed form is kept in the cache.
		object, err := d.packObject(m.Value, of)
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		page.Items = append(page.Items, object)
	})
	// An API server may encode an empty list as null.
	if !whole && string(a.items) != "null" {
		failed = errMalformed
	}
	if failed != nil {
		return nil, fmt.Errorf("reading a %s: %w", a.kind, failed)
	}
	return page, nil
}

// GetListMeta returns the resource version of the list, and the token of its next page.
func (l *list) GetListMeta() metav1.ListInterface { return &l.metadata }

// GetObjectKind returns an empty kind, because client-go does not use the kind of a list.
func (l *list) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the list itself, because its objects are immutable.
func (l *list) DeepCopyObject() runtime.Object { return l }
