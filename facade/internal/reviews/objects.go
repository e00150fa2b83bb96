package reviews

import (
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// ReviewedObjects are the objects of the requests that handlers are reviewing, by their pointers: memos are made
// another way for them.
type ReviewedObjects struct {
	mu  sync.RWMutex
	all map[any]*handlers.Admission
}

// Begin adds the objects of a request; what it returns takes them away.
func (r *ReviewedObjects) Begin(of *handlers.Admission, objects ...client.Object) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[any]*handlers.Admission{}
	}
	for _, object := range objects {
		r.all[object] = of
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, object := range objects {
			delete(r.all, object)
		}
	}
}

// Of is the request that the object is of; nil if it is of none.
func (r *ReviewedObjects) Of(object client.Object) *handlers.Admission {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.all) == 0 || reflect.TypeOf(object).Kind() != reflect.Pointer {
		return nil
	}
	return r.all[object]
}
