package handlers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// IndexFunc says what is to be found of an object, and under which keys. With keep, all stays as it was.
type IndexFunc func(ctx context.Context, call *Call) (entries map[any]any, keep bool, err error)

// Indexed is where the values of objects go.
type Indexed interface {
	// Replace makes these all values of the object.
	Replace(origin types.UID, entries map[any]any)
	// Remove takes all values of the object away.
	Remove(origin types.UID)
}

// Index is what an indexing handler does: what Call says of an object goes Into the index.
type Index struct {
	Call IndexFunc
	Into Indexed
}
