package explorer_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const (
	group      = "explorer.example.org"
	plural     = "carriers"
	namespace  = "default"
	objectName = "one"
	// restart is how long no operator runs after a kill.
	restart = time.Second
	// calm is how long everything may take to come to an end after the last step of a scenario.
	calm = 10 * time.Minute
)

var gvk = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Carrier"}

// world is the API server with one object, the people who change it, and one operator that dies on the way.
type world struct {
	t        *testing.T
	scenario scenario
	course   course
	server   *memapi.Server
	client   client.Client // of everybody but the operator

	mu      sync.Mutex
	counts  map[moment]int
	reached []point
	struck  bool // the trouble was there
	died    chan struct{}
	killed  time.Time
	lives   int
	ledger  ledger

	violations []string // what must not be, once the run is over
}

// reach counts a point, and kills the process at the one of the course.
func (w *world) reach(m moment, l *link) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead.Load() {
		return 0
	}
	w.counts[m]++
	here := point{m, w.counts[m]}
	w.reached = append(w.reached, here)
	if here == w.course.cut {
		l.dead.Store(true)
		w.killed = time.Now()
		close(w.died)
	}
	return here.number
}

// strikes tells what goes wrong with the write of this number.
func (w *world) strikes(number int) disturbance {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.course.trouble
	due := t.write == number || t.after && w.lives > 1
	if !t.ofWrites() || w.struck || !due {
		return nothing
	}
	w.struck = true
	return t.disturbance
}

// interfere is somebody else's change that matters.
func (w *world) interfere() {
	w.edit(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"foreign": "yes"}) })
}

// edit changes the object, if there is one.
func (w *world) edit(change func(*unstructured.Unstructured)) {
	for {
		object := w.object()
		if object == nil {
			return
		}
		change(object)
		err := w.client.Update(context.Background(), object)
		switch {
		case err == nil || client.IgnoreNotFound(err) == nil:
			return
		case !isConflict(err):
			w.t.Errorf("editing the object: %v", err)
			return
		}
	}
}

// object is what there is of it; nil if it is no more.
func (w *world) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	err := w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: objectName}, object)
	if client.IgnoreNotFound(err) != nil {
		w.t.Errorf("reading the object: %v", err)
	}
	if err != nil {
		return nil
	}
	return object
}

// note keeps the books on what the operator has written.
func (w *world) note(*http.Request, *http.Response) {
	object := w.object()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledger.written(object)
}
