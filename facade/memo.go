package kopf

import (
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
)

// Memo keeps a value in memory for each object.
type Memo[V any] struct {
	// newValue creates a value. reviewed finds the admission request of an object.
	newValue        func() *V
	reviewedObjects *reviews.ReviewedObjects

	mu    sync.Mutex
	byUID map[types.UID]*V
	// admissionValues contains values that only admission handlers have requested. Their objects may not be watched, so
	// the operator does not see their deletion. The cache is bounded instead.
	admissionValues *lru.Cache
}

var errNoMemo = errors.New("kopf: the memo is nil or empty: make it with kopf.NewMemo, before the handlers that use " +
	"it are called; in a test, with facadetest.NewMemo")

// maxAdmissionValues is the number of values kept for objects that only admission handlers have requested.
const maxAdmissionValues = 1000

// NewMemo makes a memo for a selection. A value begins as zero or as the result of fresh, and ends with its object.
// Kopf: memo.
func NewMemo[V any, T client.Object](s Selection[T], fresh ...func() *V) *Memo[V] {
	// The memo is usable even after a registration error, so that the program reaches the set-up, which reports it.
	m := &Memo[V]{
		newValue: func() *V { return new(V) }, byUID: map[types.UID]*V{}, admissionValues: lru.New(maxAdmissionValues),
		reviewedObjects: &reviews.ReviewedObjects{},
	}
	switch {
	case s.kind == nil:
		s.kind.AddError(errors.New("NewMemo: the selection is empty: make it with kopf.For or kopf.ForResource"))
	case len(fresh) > 1 || len(fresh) == 1 && fresh[0] == nil:
		s.kind.AddError(
			fmt.Errorf("NewMemo: one function makes the values, and it is not nil: %d were given", len(fresh)),
		)
	case s.op.isValid():
		if len(fresh) == 1 {
			m.newValue = fresh[0]
		}
		m.reviewedObjects = &s.op.reviewedObjects
		s.kind.Registry.AddMemo(m.forgetValue)
	}
	return m
}

// Of returns the value of an object. Handlers can run concurrently, so shared data needs a lock. See docs/indices.md.
func (m *Memo[V]) Of(object client.Object) *V {
	m.mustBeValid()
	// An object to be created may not have a uid yet. Its value is shared by the handlers of the request, and ends with
	// it.
	asked := m.reviewedObjects.RequestOf(object)
	if asked != nil && asked.Operation == string(admissionv1.Create) {
		value, _ := asked.SharedValue(m, func() any { return m.newValue() }).(*V)
		return value
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := object.GetUID()
	value := m.byUID[uid]
	if value != nil {
		return value
	}
	// A handler of the object takes over the value of its admission handlers, if it is still cached.
	if known, found := m.admissionValues.Get(uid); found {
		value, _ = known.(*V)
	} else {
		value = m.newValue()
	}
	// Only a call outside of a review shows that the object is watched, and that forget will be called for it.
	if asked != nil {
		m.admissionValues.Add(uid, value)
		return value
	}
	m.admissionValues.Remove(uid)
	m.byUID[uid] = value
	return value
}

// Len returns the number of values.
func (m *Memo[V]) Len() int {
	m.mustBeValid()
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byUID) + m.admissionValues.Len()
}

// mustBeValid panics for the zero value of a memo, because Of and Len do not return errors.
func (m *Memo[V]) mustBeValid() {
	if m == nil || m.newValue == nil {
		panic(errNoMemo)
	}
}

// forgetValue removes the value of an object that is gone.
func (m *Memo[V]) forgetValue(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, uid)
	m.admissionValues.Remove(uid)
}
