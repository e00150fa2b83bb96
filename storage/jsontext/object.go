package jsontext

import (
	"fmt"
	"sync"
	"sync/atomic"

	kjson "sigs.k8s.io/json"
)

// Object is one JSON object. Nil is none at all. Any goroutine may use it.
type Object struct {
	text []byte
	from Source // nil for all others

	rendering sync.Once // for those with a source: makes the text
	once      sync.Once // for those with a text
	decoded   atomic.Bool
	value     map[string]any
	err       error
}

// Source is what an object comes from that is no JSON. Any goroutine may use it.
type Source interface {
	// JSON is the object as a text.
	JSON() ([]byte, error)
	// Metadata is a text with what is under metadata, and maybe with more of the object.
	Metadata() ([]byte, error)
	// Into decodes the object into the Go value that into points to, which is empty. It returns false for one that it
	// cannot decode into without going by way of JSON.
	Into(into any) bool
}

// New makes an object of a text that is known to be well-formed and an object. The text must not change any more.
func New(text []byte) *Object { return &Object{text: text} }

// From makes an object of a source. Its text is made when somebody asks for it.
func From(source Source) *Object { return &Object{from: source} }

// Of makes an object of a value that has no text; nil is none.
func Of(value map[string]any) *Object {
	if value == nil {
		return nil
	}
	return &Object{value: value}
}

// Encoded tells whether there is a text, or a source of one, so that nothing need be decoded as yet.
func (o *Object) Encoded() bool { return o != nil && (o.text != nil || o.from != nil) }

// Decoded tells whether Value costs nothing, as somebody has asked for it before, or as there is nothing else.
func (o *Object) Decoded() bool { return !o.Encoded() || o.decoded.Load() }

// Text is the text; nil if there is none. It is shared: callers must not modify it.
func (o *Object) Text() []byte {
	if o == nil {
		return nil
	}
	if o.from != nil {
		o.rendering.Do(func() { o.text, o.err = o.from.JSON() })
	}
	return o.text
}

// Into decodes the object at once into the Go value that into points to, which is empty. It returns false if that needs
// more than the source or the text: the value has to be asked for then, which says what is wrong.
func (o *Object) Into(into any) bool {
	if o == nil || o.from != nil && o.from.Into(into) {
		return o != nil
	}
	if object, is := into.(*map[string]any); is {
		decoded, err := DecodeObject(o.Text())
		*object = decoded
		return err == nil
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(o.Text(), into) == nil
}

// Value is the object as maps and lists, with integers as int64; nil if there is none. It is shared: callers must not
// modify it. An error is that of a number that no float64 can be, or of a source that is damaged.
func (o *Object) Value() (map[string]any, error) {
	if o == nil {
		return nil, nil
	}
	if o.Text() != nil {
		o.once.Do(func() {
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
