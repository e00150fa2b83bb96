package jsontext

import (
	"fmt"
	"sync"

	kjson "sigs.k8s.io/json"
)

// Object is one JSON object. Nil is none at all. Any goroutine may use it.
type Object struct {
	text []byte

	once  sync.Once // for those with a text
	value map[string]any
	err   error
}

// New makes an object of a text that is known to be well-formed and an object. The text must not change any more.
func New(text []byte) *Object { return &Object{text: text} }

// Of makes an object of a value that has no text; nil is none.
func Of(value map[string]any) *Object {
	if value == nil {
		return nil
	}
	return &Object{value: value}
}

// Text is the text; nil if there is none. It is shared: callers must not modify it.
func (o *Object) Text() []byte {
	if o == nil {
		return nil
	}
	return o.text
}

// Value is the object as maps and lists, with integers as int64; nil if there is none. It is shared: callers must not
// modify it. An error is that of a number that no float64 can be.
func (o *Object) Value() (map[string]any, error) {
	if o == nil {
		return nil, nil
	}
	if o.text != nil {
		o.once.Do(o.decode)
	}
	return o.value, o.err
}

func (o *Object) decode() {
	var value map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.text, &value); err != nil {
		o.err = fmt.Errorf("decoding a JSON object: %w", err)
		return
	}
	o.value = value
}
