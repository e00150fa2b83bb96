package kopf

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// Index finds values of the selected objects by key. It is safe for concurrent use.
type Index[K comparable, V any] struct{ index *indexes.ObjectIndex }

var errNoIndex = errors.New("kopf: the index is nil or empty: make it with kopf.NewIndex, before the handlers that " +
	"use it are called; in a test, with facadetest.NewIndex")

// engineIndex returns the engine's index. It panics for the zero value: the methods that use it do not return errors.
func (i *Index[K, V]) engineIndex() *indexes.ObjectIndex {
	if i == nil || i.index == nil {
		panic(errNoIndex)
	}
	return i.index
}

// changeNotifier returns the source of notifications about changes of the index; nil for the zero value.
func (i *Index[K, V]) changeNotifier() handlers.Notifier {
	if i == nil || i.index == nil {
		return nil
	}
	return i.index
}

// NewIndex registers a function that returns the entries of an object. Kopf: on.index.
//
//	byOwner := kopf.NewIndex(dbs, "by-owner", func(_ context.Context, db *v1.Database) (map[string]string, error) {
//		return map[string]string{db.Spec.Owner: db.Name}, nil
//	})
//
// It runs for each event, before the handlers, so it must be fast and must not write. No handler starts before all
// indices are filled.
//
// By default, an error is logged and the entries stay, as with [ErrKeepEntries]. [Temporary] and [Permanent] remove
// them. See docs/indices.md.
func NewIndex[T client.Object, K comparable, V any](
	s Selection[T], id string, fn func(ctx context.Context, object T) (map[K]V, error), opts ...indexOption,
) *Index[K, V] {
	// After a registration error, the index is empty but usable, so that the program reaches the set-up, which reports
	// it.
	held := indexes.New()
	h := handlers.Handler{
		ID: id, Family: handlers.Indexing, ReadsText: true, DecodedType: s.codec.StructType(),
		Index: &handlers.IndexWork{},
	}
	if _, ok := prepareHandler(s, &h, "NewIndex", fn == nil, asOptions(opts), nil); ok {
		said := &loggedMistakes{}
		setFunction(&h, fn)
		// A further registration of the same function fills the same index.
		held = s.kind.Registry.FindOrAddIndex(indexKey{id, h.InstanceKey, reflect.TypeOf(fn)}, held)
		h.Index.Store = held
		h.Index.Call = func(ctx context.Context, call *handlers.Invocation) (map[any]any, bool, error) {
			object, err := s.codec.DecodeFrom(call.EncodedObject, call.WorkingCopy)
			if err != nil {
				return nil, false, err
			}
			entries, err := fn(withAttempt(ctx, call), object)
			if errors.Is(err, ErrKeepEntries) {
				return nil, true, nil
			}
			said.noteDelay(logf.FromContext(ctx), err)
			return untypedEntries(entries), false, err
		}
		s.kind.Registry.RegisterHandler(registry.HandlerEntry{Kind: s.kind, Verb: "NewIndex", Handler: &h})
	}
	return &Index[K, V]{held}
}

// ByRange fills the index from the objects that this replica handles, if the replicas share the objects by
// [ShardingSettings]. Without it, each replica watches all objects for the index. Handlers do not wait until such an
// index is filled from the other ranges of the replica.
func ByRange() indexOption {
	return optionOf[indexOption]("ByRange", nil, func(h *handlers.Handler) { h.Index.ByRange = true })
}

// indexKey identifies an index: registrations of one function under one id fill the same index.
type indexKey struct {
	id       string
	instance any
	typ      reflect.Type
}

// untypedEntries returns the entries in the form in which the engine stores them.
func untypedEntries[K comparable, V any](entries map[K]V) map[any]any {
	all := make(map[any]any, len(entries))
	for key, value := range entries {
		all[key] = value
	}
	return all
}

// Get returns copies of the values under the key, one per object, unordered. Values with unexported fields are shared.
func (i *Index[K, V]) Get(key K) []V {
	found := i.engineIndex().Get(key)
	if len(found) == 0 {
		return nil
	}
	values := make([]V, 0, len(found))
	for _, value := range found {
		typed, _ := value.(V)
		values = append(values, codec.DeepCopy(typed))
	}
	return values
}

// Values iterates over the values of Get. Kopf: iter(store).
func (i *Index[K, V]) Values(key K) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, value := range i.engineIndex().Get(key) {
			typed, _ := value.(V)
			if !yield(codec.DeepCopy(typed)) {
				return
			}
		}
	}
}

// All iterates over all keys and values. Kopf: items().
func (i *Index[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key := range i.Keys() {
			for value := range i.Values(key) {
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

// Keys iterates over all keys. Kopf: iter(index).
func (i *Index[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for _, key := range i.engineIndex().Keys() {
			typed, _ := key.(K)
			if !yield(typed) {
				return
			}
		}
	}
}

// Counts iterates over all keys with their numbers of values.
func (i *Index[K, V]) Counts() iter.Seq2[K, int] {
	return func(yield func(K, int) bool) {
		for key := range i.Keys() {
			if count := i.Count(key); count > 0 && !yield(key, count) {
				return
			}
		}
	}
}

// Count returns the number of values under the key. Kopf: len(store).
func (i *Index[K, V]) Count(key K) int { return i.engineIndex().Count(key) }

// Has reports whether the key has values.
func (i *Index[K, V]) Has(key K) bool { return i.engineIndex().Count(key) > 0 }

// Len returns the number of keys. Kopf: len(index).
func (i *Index[K, V]) Len() int { return i.engineIndex().Len() }
