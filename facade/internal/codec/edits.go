package codec

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Encode gives the raw form of an object, to be compared with later by [Codec.Edits].
func (c *Codec[T]) Encode(object T) (tree map[string]any, err error) {
	if err = Call(func() (err error) { tree, err = c.encode(object); return err }); err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	return tree, nil
}

// Edits makes a transformation of the raw object out of what has been changed in a T in place: before is its raw form
// at that time. It is nil if nothing differs but the identity, which stays as it was, as with Transform.
func (c *Codec[T]) Edits(
	before map[string]any, object T, lists Lists,
) (func(body map[string]any) error, error) {
	after, err := c.Encode(object)
	if err != nil {
		return nil, err
	}
	after = keepIdentity(before, after)
	if diff.Equal(before, after) {
		return nil, nil
	}
	return func(body map[string]any) error {
		c.apply(body, before, after, lists)
		return nil
	}, nil
}
