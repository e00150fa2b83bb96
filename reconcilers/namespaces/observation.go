package namespaces

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// lingering is how long a namespace is served after its end: the last events of its objects may come later than its
// own.
const lingering = 5 * time.Second

// observation is what an informer of namespaces has told.
type observation struct {
	mu      sync.Mutex
	served  *Served
	leaving map[string]*time.Timer
	begun   bool
	ended   bool
	serve   func(names []string)
}

var _ toolscache.ResourceEventHandler = (*observation)(nil)

// begin tells the names for the first time, when all are listed.
func (o *observation) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
	o.tell()
}

// end tells nothing any more.
func (o *observation) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, timer := range o.leaving {
		timer.Stop()
	}
}

// OnAdd is called for a namespace that is listed, or new.
func (o *observation) OnAdd(object any, _ bool) { o.observe(watch.Added, object) }

// OnUpdate is called for every change of a namespace.
func (o *observation) OnUpdate(_, object any) { o.observe(watch.Modified, object) }

// OnDelete is called for a namespace that is gone.
func (o *observation) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	o.observe(watch.Deleted, object)
}

func (o *observation) observe(event watch.EventType, object any) {
	namespace, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	name := namespace.GetName()
	was := o.served.Has(name)
	o.served.Observe(event, namespace.Object)
	switch is := o.served.Has(name); {
	case was && !is && o.begun:
		o.leaving[name] = time.AfterFunc(lingering, func() { o.leave(name) })
	case is && o.leaving[name] != nil:
		o.leaving[name].Stop()
		delete(o.leaving, name)
	case was == is:
		return
	}
	o.tell()
}

// leave ends the time of a namespace, unless it has come back.
func (o *observation) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.served.Has(name) {
		return
	}
	delete(o.leaving, name)
	o.tell()
}

// tell has the names served. The lock is held.
func (o *observation) tell() {
	if !o.begun || o.ended {
		return
	}
	names := o.served.Names()
	for name := range o.leaving {
		names = append(names, name)
	}
	slices.Sort(names)
	o.serve(names)
}
