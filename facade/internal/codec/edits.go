package codec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// JSONText returns the JSON text of an object as the starting point for [Codec.EditTransform]. For a large object, the
// text takes a small fraction of the memory of the raw form.
func (c *Codec[T]) JSONText(object T) (text []byte, err error) {
	// Encoders can be users' code and may panic.
	err = Call(func() error {
		if raw, ok := any(object).(*unstructured.Unstructured); ok {
			text, err = json.Marshal(raw.Object)
		} else {
			text, err = json.Marshal(object)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	return text, nil
}

// EditTransform returns a transformation that applies the user's changes of a T to the raw object. former is the JSON
// text of the T before the changes, and object is the T after them. It returns nil if nothing has changed. The identity
// is always preserved, as in Transform, so its changes do not count.
func (c *Codec[T]) EditTransform(
	former []byte, object T, lists Lists,
) (func(body map[string]any) error, error) {
	text, err := c.JSONText(object)
	// Encoding is deterministic, so equal texts mean that nothing has changed. This is the common case, and it parses
	// nothing.
	if err != nil || bytes.Equal(former, text) {
		return nil, err
	}
	before, err := jsontext.DecodeObject(former)
	if err != nil {
		return nil, err
	}
	after, err := jsontext.DecodeObject(text)
	if err != nil {
		return nil, err
	}
	// Changes of the identity are reverted, so they do not count as changes.
	after = keepIdentity(before, after)
	if diff.Equal(before, after) {
		return nil, nil
	}
	return func(body map[string]any) error {
		c.applyChange(body, before, after, lists)
		return nil
	}, nil
}
