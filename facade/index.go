package kopf

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/deepcopy"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// indexOption is an option of NewIndex.
type indexOption interface {
	Option
	indexOption()
}

func (option) indexOption() {}

// Index is a lookup of all selected objects by keys of any kind. It may be used by any number of goroutines. Make it
// with [NewIndex].
type Index[K comparable, V any] struct{ index *indexes.Index }

var errNoIndex = errors.New("kopf: the index is nil or empty: make it with kopf.NewIndex, before the handlers that " +
	"use it are called; in a test, with facadetest.NewIndex")

// held panics with a message, where there is no index at all.
func (i *Index[K, V]) held() *indexes.Index {
	if i == nil || i.index == nil {
		panic(errNoIndex)
	}
	return i.index
}

// notifier reports changes of the index; nil without an index.
func (i *Index[K, V]) notifier() handlers.Notifier {
	if i == nil || i.index == nil {
		return nil
	}
	return i.index
}

// NewIndex registers an index of the selected objects: for every object, the function says what is to be found under
// which keys.
//
//	byOwner := kopf.NewIndex(dbs, "by-owner", func(_ context.Context, db *v1.Database) (map[string]string, error) {
//		return map[string]string{db.Spec.Owner: db.Name}, nil
//	})
//
// The same function registered under the same id for several selections fills one index: an object that several of them
// select is indexed once. For a collection without keys, as Kopf makes of results that are no dict, return a
// map[struct{}]V with one value; Get(struct{}{}) has all of them. Kopf: on.index; handlers have the handle in their
// closures instead of an argument.
//
// # Flow
//
// The function is called for every event of an object, before any handler is: a handler never sees an index that is
// older than its object. Of other kinds it shows what their watches have brought, which may be a moment old, also after
// a write of one's own: where that matters, read live. No handler of the operator is called before all objects of all
// indexed kinds are through their functions, but for kinds that cannot be listed. An object that is gone, or is not
// selected any more, has no entries.
//
// # Assumptions
//
// The function is fast: all events of the kind wait for it. It writes nothing.
//
// # Errors
//
// An ordinary error, or a panic, is logged, and the entries stay, unless the option [Errors] says otherwise. After a
// temporary error, the object is left out until its first event after the delay; after a permanent one, until the
// operator restarts. [ErrKeepEntries] is not an error: the entries stay. [AttemptFrom] counts the failures so far.
func NewIndex[T client.Object, K comparable, V any](
	s Selection[T], id string, fn func(ctx context.Context, object T) (map[K]V, error), opts ...indexOption,
) *Index[K, V] {
	held := indexes.New()
	h := handlers.Handler{ID: id, Family: handlers.Indexing, ReadsText: true, Type: s.codec.Type()}
	if _, ok := prepare(s, &h, "NewIndex", fn == nil, asOptions(opts), nil); ok {
		said := &mistakes{}
		setFunction(&h, fn)
		held = s.kind.op.indexOf(indexKey{id, h.Instance, reflect.TypeOf(fn)}, held)
		h.Index = &handlers.Index{Into: held, Call: func(
			ctx context.Context, call *handlers.Invocation,
		) (map[any]any, bool, error) {
			object, err := s.codec.DecodeFrom(call.Given, call.Working)
			if err != nil {
				return nil, false, err
			}
			entries, err := fn(withAttempt(ctx, call), object)
			if errors.Is(err, ErrKeepEntries) {
				return nil, true, nil
			}
			said.noteDelay(logf.FromContext(ctx), err)
			return untyped(entries), false, err
		}}
		s.kind.op.register(registration{kind: s.kind, verb: "NewIndex", handler: &h})
	}
	return &Index[K, V]{held}
}

// indexKey identifies an index: registrations of one function under one id fill the same one.
type indexKey struct {
	id       string
	instance any
	typ      reflect.Type
}

// indexOf returns the index that was registered under the key before, or registers this one.
func (op *Operator) indexOf(key indexKey, index *indexes.Index) *indexes.Index {
	if former, ok := op.indexes[key]; ok {
		return former
	}
	if op.indexes == nil {
		op.indexes = map[indexKey]*indexes.Index{}
	}
	op.indexes[key] = index
	return index
}

// untyped gives the entries as the engine keeps them.
func untyped[K comparable, V any](entries map[K]V) map[any]any {
	all := make(map[any]any, len(entries))
	for key, value := range entries {
		all[key] = value
	}
	return all
}

// Get gives the values under the key, one for each object that has one, in no order. It is what was there at one
// moment. The slice and the values are the caller's own copies; but a value with unexported fields, such as a client or
// a lock, is shared as it is, unless it is an object of Kubernetes.
func (i *Index[K, V]) Get(key K) []V {
	found := i.held().Get(key)
	if len(found) == 0 {
		return nil
	}
	values := make([]V, 0, len(found))
	for _, value := range found {
		typed, _ := value.(V)
		values = append(values, deepcopy.Copy(typed))
	}
	return values
}

// Values iterates over the values under the key as they are when it begins; they are copies, as those of Get. Kopf:
// iterating over a Store.
func (i *Index[K, V]) Values(key K) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, value := range i.held().Get(key) {
			typed, _ := value.(V)
			if !yield(deepcopy.Copy(typed)) {
				return
			}
		}
	}
}

// All iterates over all values with their keys, in no order, the values of one key one after the other: the keys as
// they are when it begins, the values of each as they are when it gets there. They are copies, as those of Get. Kopf:
// items().
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

// Keys iterates over all keys as they are when it begins, in no order. Kopf: iterating over an Index.
func (i *Index[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for _, key := range i.held().Keys() {
			typed, _ := key.(K)
			if !yield(typed) {
				return
			}
		}
	}
}

// Counts iterates over all keys, as Keys does, with the number of values under each; nothing is copied.
func (i *Index[K, V]) Counts() iter.Seq2[K, int] {
	return func(yield func(K, int) bool) {
		for key := range i.Keys() {
			if count := i.Count(key); count > 0 && !yield(key, count) {
				return
			}
		}
	}
}

// Count is the number of values under the key. Kopf: len() of a Store.
func (i *Index[K, V]) Count(key K) int { return i.held().Count(key) }

// Has tells whether there is any value under the key.
func (i *Index[K, V]) Has(key K) bool { return i.held().Count(key) > 0 }

// Len is the number of keys. Kopf: len() of an Index.
func (i *Index[K, V]) Len() int { return i.held().Len() }
