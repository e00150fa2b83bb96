package facade

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memo is something to be remembered of every selected object, in memory, for as long as the object is there. Make it
// with [NewMemo].
type Memo[V any] struct {
	fresh func() *V

	mu    sync.Mutex
	byUID map[types.UID]*V
}

// NewMemo makes a memo for the objects of a selection: what is kept under an object is dropped when that is gone and
// its handlers have been told, and when the operator ends. Every value begins as a zero one; or as what the function
// makes, if one is given. Kopf: memo, which is one for all handlers of an object; here, each has a type and an owner.
func NewMemo[V any, T client.Object](s Selection[T], fresh ...func() *V) *Memo[V] {
	m := &Memo[V]{fresh: func() *V { return new(V) }, byUID: map[types.UID]*V{}}
	switch {
	case s.kind == nil:
		s.kind.addError(errors.New("NewMemo: the selection is empty: make it with kopf.For or kopf.ForResource"))
	case len(fresh) > 1 || len(fresh) == 1 && fresh[0] == nil:
		s.kind.addError(
			fmt.Errorf("NewMemo: one function makes the values, and it is not nil: %d were given", len(fresh)),
		)
	case s.kind.op.valid():
		if len(fresh) == 1 {
			m.fresh = fresh[0]
		}
		s.kind.op.addMemo(m.forget)
	}
	return m
}

// Of gives the value of an object, always the same one until the object is gone; it is made at the first time. Handlers
// of one object may run beside one another, such as a daemon and a handler of changes: what they share needs a lock of
// its own.
func (m *Memo[V]) Of(object client.Object) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := object.GetUID()
	value := m.byUID[uid]
	if value == nil {
		value = m.fresh()
		m.byUID[uid] = value
	}
	return value
}

// Len is how many objects have a value.
func (m *Memo[V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byUID)
}

func (m *Memo[V]) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, uid)
}

// addMemo adds a memo, which has to forget objects that are gone.
func (op *Operator) addMemo(forget func(types.UID)) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.memos = append(op.memos, forget)
}

// forgetMemos makes the function that has all memos forget an object; nil if there are none.
func (op *Operator) forgetMemos() func(types.UID) {
	memos := op.memos
	if len(memos) == 0 {
		return nil
	}
	return func(uid types.UID) {
		for _, forget := range memos {
			forget(uid)
		}
	}
}
