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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

var errMalformed = errors.New("not a well-formed JSON object")

// texts decodes JSON. If bare says what the objects are, nothing but the metadata is kept of them, whatever they say
// that they are, and whatever the API server has sent. If whole is false for the metadata of an object, nothing but the
// identity is kept of it.
type texts struct {
	packer *compact.Packer
	bare   *metav1.TypeMeta
	whole  func(metadata []byte) bool
}

var _ runtime.Serializer = texts{}

// Identifier is that of the encoder.
func (texts) Identifier() runtime.Identifier { return "compact texts" }

// Encode is never called.
func (texts) Encode(runtime.Object, io.Writer) error { return errReading }

// Decode reads an event of a watch, whose object stays as it is; an object; a list of them; or a status, which is an
// error.
func (d texts) Decode(
	data []byte, _ *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, is := into.(*metav1.WatchEvent); is {
		return event, nil, decodeEvent(data, event)
	}
	var a answer
	if !jsontext.Members(data, a.take) {
		return nil, nil, fmt.Errorf("reading an answer of the API server: %w", errMalformed)
	}
	found := schema.FromAPIVersionAndKind(a.version, a.kind)
	switch {
	case a.kind == "Status" && a.version == "v1":
		status := &metav1.Status{}
		err := kjson.UnmarshalCaseSensitivePreserveInts(data, status)
		return status, &found, err
	case a.isList():
		list, err := a.list(d)
		return list, &found, err
	default:
		object, err := d.object(data, metav1.TypeMeta{})
		return object, &found, err
	}
}

// object makes one that is what the type says, if it does not say so itself.
func (d texts) object(text []byte, typ metav1.TypeMeta) (*compact.Object, error) {
	if d.bare == nil {
		if d.whole != nil {
			if reduced := d.reduced(text); reduced != nil {
				return compact.New(reduced, typ) // apart from the dictionary of whole objects
			}
		}
		return d.packer.New(text, typ)
	}
	metadata := []byte("{}")
	whole := jsontext.Members(text, func(m jsontext.Member) {
		if string(m.Key) == "metadata" {
			metadata = m.Value
		}
	})
	if !whole {
		return nil, fmt.Errorf("reading the metadata of an object: %w", errMalformed)
	}
	return d.packer.New(slices.Concat([]byte(`{"metadata":`), metadata, []byte("}")), *d.bare)
}

// reduced is the object with its type and identity alone; nil if it is kept as it is.
func (d texts) reduced(text []byte) []byte {
	kept, metadata := []byte{'{'}, []byte(nil)
	isWhole := jsontext.Members(text, func(m jsontext.Member) {
		switch string(m.Key) {
		case "apiVersion", "kind":
			kept = appendMember(kept, m)
		case "metadata":
			metadata = m.Value
		}
	})
	if !isWhole || metadata == nil || d.whole(metadata) {
		return nil
	}
	identity, hasName := []byte{'{'}, false
	isWhole = jsontext.Members(metadata, func(m jsontext.Member) {
		switch string(m.Key) {
		case "name", "namespace", "uid", "resourceVersion", "deletionTimestamp":
			identity = appendMember(identity, m)
			hasName = hasName || string(m.Key) == "name"
		}
	})
	if !isWhole || !hasName {
		return nil // malformed, or the bookmark that ends a listing
	}
	identity = append(identity, '}')
	return append(appendMember(kept, jsontext.Member{Key: []byte("metadata"), Value: identity}), '}')
}

// appendMember appends a member to an object that is not closed yet.
func appendMember(to []byte, m jsontext.Member) []byte {
	if to[len(to)-1] != '{' {
		to = append(to, ',')
	}
	return slices.Concat(to, []byte{'"'}, m.Key, []byte(`":`), m.Value)
}

func decodeEvent(data []byte, event *metav1.WatchEvent) error {
	whole := jsontext.Members(data, func(m jsontext.Member) {
		switch string(m.Key) {
		case "type":
			_ = kjson.UnmarshalCaseSensitivePreserveInts(m.Value, &event.Type)
		case "object":
			event.Object.Raw = m.Value
		}
	})
	if !whole {
		return fmt.Errorf("reading an event of a watch: %w", errMalformed)
	}
	return nil
}

// answer is what the API server sends, as far as it must be known to decode it.
type answer struct {
	kind, version   string
	metadata, items []byte
}

func (a *answer) take(m jsontext.Member) {
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

// isList is false for an object of a kind such as ShoppingList, which has a name.
func (a *answer) isList() bool {
	return a.items != nil && strings.HasSuffix(a.kind, "List") && jsontext.New(a.metadata).String("name") == ""
}

// list is one page of a list.
type list struct {
	metadata metav1.ListMeta
	Items    []*compact.Object // client-go finds them by this name
}

var (
	_ runtime.Object          = (*list)(nil)
	_ metav1.ListMetaAccessor = (*list)(nil)
)

func (a *answer) list(d texts) (*list, error) {
	page := &list{}
	if a.metadata != nil {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(a.metadata, &page.metadata); err != nil {
			return nil, fmt.Errorf("reading the metadata of a %s: %w", a.kind, err)
		}
	}
	of := metav1.TypeMeta{APIVersion: a.version, Kind: strings.TrimSuffix(a.kind, "List")}
	var failed error
	whole := jsontext.Elements(a.items, func(m jsontext.Member) {
		object, err := d.object(m.Value, of)
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		page.Items = append(page.Items, object)
	})
	if !whole && string(a.items) != "null" {
		failed = errMalformed
	}
	if failed != nil {
		return nil, fmt.Errorf("reading a %s: %w", a.kind, failed)
	}
	return page, nil
}

// GetListMeta has the version, and where the next page begins.
func (l *list) GetListMeta() metav1.ListInterface { return &l.metadata }

// GetObjectKind knows nothing: nobody asks for it.
func (l *list) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject gives the list itself: its objects never change.
func (l *list) DeepCopyObject() runtime.Object { return l }
