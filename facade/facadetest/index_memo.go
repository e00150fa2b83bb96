package facadetest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// NewIndex returns an index with these values under each key, for handlers that use an index.
func NewIndex[K comparable, V any](entries map[K][]V) *kopf.Index[K, V] {
	op := kopf.New(operatorName)
	index := kopf.NewIndex(placeholderSelection(op), "index",
		func(context.Context, *unstructured.Unstructured) (map[K]V, error) {
			return nil, nil
		})
	into := indexTarget(op)
	count := 0
	for key, values := range entries {
		for _, value := range values {
			count++
			// Each value gets its own uid: an index replaces earlier entries of the same object.
			into.ReplaceEntries(types.UID(fmt.Sprint(count)), map[any]any{key: value})
		}
	}
	return index
}

// NewMemo returns a memo with these values of objects, for handlers that use a memo. Other objects start with a zero
// value, or with the result of the function, if one is passed, as with kopf.NewMemo. An object without a uid is
// identified by its namespace and name, like the same object in NewChange.
func NewMemo[V any](values map[client.Object]*V, fresh ...func() *V) *kopf.Memo[V] {
	if len(fresh) > 1 || len(fresh) == 1 && fresh[0] == nil {
		panicMisuse("NewMemo: one function makes the values, and it is not nil: %d were given", len(fresh))
	}
	// A memo has no setter. Its constructor function returns the given value while the loop below fills it.
	given := (*V)(nil)
	memo := kopf.NewMemo(placeholderSelection(kopf.New(operatorName)), func() *V {
		switch {
		case given != nil:
			return given
		case len(fresh) > 0:
			return fresh[0]()
		default:
			return new(V)
		}
	})
	for object, value := range values {
		if object == nil || value == nil {
			panicMisuse("NewMemo: an object or a value is nil: leave it out")
		}
		given = value
		// The uid alone identifies an object in a memo.
		known := &unstructured.Unstructured{Object: map[string]any{}}
		known.SetUID(uidOf(object))
		memo.Of(known)
	}
	// Objects that are not in the map must get values of their own.
	given = nil
	return memo
}

// placeholderSelection returns a selection for the constructors of indices and memos. No object is ever matched with
// it.
func placeholderSelection(op *kopf.Operator) kopf.Selection[*kopf.Unstructured] {
	return kopf.ForResource(op, "v1", "configmaps")
}

// indexTarget returns the storage of the operator's only index.
func indexTarget(op *kopf.Operator) handlers.EntryStore {
	absent, scheme := &missingClient{}, runtime.NewScheme()
	parts, err := kit.PartsOf(op, scheme, absent.newClient(scheme))
	if err != nil || len(parts.Handlers) != 1 {
		panicMisuse("NewIndex: %d handlers, %v", len(parts.Handlers), err)
	}
	return parts.Handlers[0].Index.Store
}
