package jsontext

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	kjson "sigs.k8s.io/json"
)

// LazyObject is one JSON object, as a text or decoded. Nil is the absence of an object. All methods may be called
// concurrently.
type LazyObject struct {
	text []byte
	from ObjectSource // nil if the object was made of a text or a value

	renderOnce sync.Once   // makes the text of a source
	decodeOnce sync.Once   // decodes the text
	decoded    atomic.Bool // value is set; read without waiting for once
	value      map[string]any
	err        error
}

// ObjectSource is the origin of an object that is not JSON, such as a protobuf message. All methods may be called
// concurrently.
type ObjectSource interface {
	// JSON returns the object as a text.
	JSON() ([]byte, error)
	// MetadataJSON returns a text of an object with at least the field metadata. It can have more fields of the object.
	MetadataJSON() ([]byte, error)
	// DecodeInto decodes the object into the empty Go value to which the argument points. It returns false if it can
	// decode only by means of JSON.
	DecodeInto(into any) bool
}

// New returns an object for a text that must be a well-formed JSON object. The text must not be changed afterwards.
func New(text []byte) *LazyObject { return &LazyObject{text: text} }

// NewFromSource returns an object for a source. It encodes the source to JSON only when that is needed.
func NewFromSource(source ObjectSource) *LazyObject { return &LazyObject{from: source} }

// NewFromValue returns an object for a value without a text, and nil for a nil value.
func NewFromValue(value map[string]any) *LazyObject {
	if value == nil {
		return nil
	}
	return &LazyObject{value: value}
}

// IsEncoded reports whether the object has a text or a source, so that single fields can be read without decoding it.
func (o *LazyObject) IsEncoded() bool { return o != nil && (o.text != nil || o.from != nil) }

// IsDecoded reports whether [LazyObject.Value] is free of costs, because it was called before or the object is a value.
func (o *LazyObject) IsDecoded() bool { return !o.IsEncoded() || o.decoded.Load() }

// Text returns the text, and nil if there is none. It is shared: callers must not modify it. If the source fails, the
// text is nil, and [LazyObject.Value] returns the error.
func (o *LazyObject) Text() []byte {
	if o == nil {
		return nil
	}
	if o.from != nil {
		// Concurrent callers wait for the first one. An error is kept and returned by Value.
		o.renderOnce.Do(func() { o.text, o.err = o.from.JSON() })
	}
	return o.text
}

// DecodeInto decodes the object into the empty Go value to which the argument points. It returns false if that fails or
// is not possible directly; the caller then uses [LazyObject.Value], which returns the error.
func (o *LazyObject) DecodeInto(into any) bool {
	// A nil object cannot be decoded, but a source may decode without JSON.
	if o == nil || o.from != nil && o.from.DecodeInto(into) {
		return o != nil
	}
	if object, is := into.(*map[string]any); is {
		decoded, err := DecodeObject(o.Text())
		*object = decoded
		return err == nil
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(o.Text(), into) == nil
}

// Value returns the object as maps and lists, with integers as int64, and nil if there is none. It is shared: callers
// must not modify it.
//
// # Errors
//
// It returns an error for a number that exceeds float64, and for a damaged source.
func (o *LazyObject) Value() (map[string]any, error) {
	if o == nil {
		return nil, nil
	}
	if o.Text() != nil {
		// The flag is set last: a reader that sees it also sees the value.
		o.decodeOnce.Do(func() {
			value, err := DecodeObject(o.text)
			if err != nil {
				o.err = fmt.Errorf("decoding a JSON object: %w", err)
				return
			}
			o.value = value
			o.decoded.Store(true)
		})
	}
	return o.value, o.err
}

// StringAt returns the string at a path of keys, and an empty one if there is none. It skips the rest of the text
// without decoding it. Keys with escapes are not found.
func (o *LazyObject) StringAt(path ...string) (found string) {
	if !o.IsEncoded() {
		found, _ = o.valueAt(path).(string)
		return found
	}
	return decodedString(o.textAt(path))
}

// decodedString decodes one string. It is a function of its own because its variable escapes to the heap, and most
// objects are decoded already.
func decodedString(text []byte) (found string) {
	// A value of another type is not a string, even if it could be decoded.
	if len(text) == 0 || text[0] != '"' || json.Unmarshal(text, &found) != nil {
		return ""
	}
	return found
}

// MappingAt is like [LazyObject.StringAt] for an object within the object; it returns nil if there is none. The mapping
// is shared: callers must not modify it.
func (o *LazyObject) MappingAt(path ...string) (found map[string]any) {
	if !o.IsEncoded() {
		found, _ = o.valueAt(path).(map[string]any)
		return found
	}
	text := o.textAt(path)
	if len(text) == 0 {
		return nil
	}
	// The text null decodes to nil, which means absence, too.
	if found, err := DecodeObject(text); err == nil {
		return found
	}
	return nil
}

// valueAt returns the decoded value at a path, nil if there is none. Errors of decoding count as absence;
// [LazyObject.Value] returns them.
func (o *LazyObject) valueAt(path []string) any {
	tree, _ := o.Value()
	var value any = tree
	for _, key := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[key]
	}
	return value
}

// textAt returns the text of the value at a path, nil if there is none.
func (o *LazyObject) textAt(path []string) []byte {
	value := o.textForPath(path)
	for _, key := range path {
		if value = memberValue(value, key); value == nil {
			return nil
		}
	}
	return value
}

// textForPath returns a text that includes the path if the object does. Most callers need the metadata only, which a
// source provides faster than the whole object.
func (o *LazyObject) textForPath(path []string) []byte {
	if o.from == nil || len(path) == 0 || path[0] != "metadata" {
		return o.Text()
	}
	text, err := o.from.MetadataJSON()
	if err != nil {
		// The caller sees absence; Value returns the error of a damaged source.
		return nil
	}
	return text
}

// memberValue returns the text of the value under a key of an object, and nil if the text is not an object or does not
// have the key. As in decoders, the last one of duplicates counts.
func memberValue(text []byte, key string) (found []byte) {
	EachMember(text, func(m RawMember) {
		if string(m.Key) == key {
			found = m.Value
		}
	})
	return found
}
