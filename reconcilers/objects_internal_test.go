package reconcilers

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// listed is the object as an informer has it at the start.
func (w *world) listed() *unstructured.Unstructured {
	obj := w.kind.cached(request)
	w.kind.objects.Listed(obj)
	return obj
}

func TestInitialMarks(t *testing.T) {
	tests := map[string]struct {
		reason string
		own    []*handlers.Handler
		play   func(w *world)
	}{
		"NobodyResumes": {
			reason: "nothing is kept for handlers that nobody has", own: []*handlers.Handler{creating("c")},
			play: func(w *world) {
				w.listed()
				w.wantForgotten("after the listing")
			},
		},
		"SeenLater": {
			reason: "an object that comes after the start is not resumed", own: []*handlers.Handler{
				creating("c"), resuming("r"),
			},
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.pass()
				w.wantCalls("a new one", "c")
			},
		},
		"ListedAgain": {
			reason: "a kind that had to be started anew resumes nothing twice", own: []*handlers.Handler{
				creating("c"), resuming("r"),
			},
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.kind.objects.endListing()
				w.listed()
				w.pass()
				w.wantCalls("a new one, listed again", "c")
				w.wantForgotten("after the second listing")
			},
		},
		"NeverHandled": {
			reason: "an object that was there, but was never handled, is created", own: []*handlers.Handler{
				creating("c"), resuming("r"),
			},
			play: func(w *world) {
				w.listed()
				w.pass()
				w.deliver()
				w.pass()
				w.wantCalls("created, and not resumed after that", "c")
				w.wantForgotten("after its creation")
			},
		},
		"Resumed": {
			reason: "an object that was there is resumed once", own: []*handlers.Handler{creating("c"), resuming("r")},
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.kind.objects = newObjects(true) // another process
				w.listed()
				w.pass()
				w.deliver()
				w.pass()
				w.edit(`{"metadata":{"labels":{"a":"b"}}}`)
				w.deliver()
				w.pass()
				w.wantCalls("in two processes", "c", "r")
				w.deliver()
				w.pass()
				w.wantForgotten("after its resumption")
			},
		},
		"DeletedBeforeItsTurn": {
			reason: "the mark goes with the object", own: []*handlers.Handler{creating("c"), resuming("r")},
			play: func(w *world) {
				w.listed()
				w.object = nil
				w.deliver()
				w.pass()
				w.wantForgotten("after the deletion")
				w.wantCalls("nobody")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			tc.play(newWorld(t, tc.own...))
		})
	}
}

// The memory of a kind outlives its service, that of other kinds and namespaces is another one.
func TestMemoryOfScopes(t *testing.T) {
	e := &engine{}
	own := []*handlers.Handler{resuming("r")}
	here := scope{widgets.GroupResource(), "here"}
	if first := e.memory(here, own); !first.resuming || first != e.memory(here, own) {
		t.Error("a kind that is served again has another memory")
	}
	if e.memory(here, own) == e.memory(scope{widgets.GroupResource(), "there"}, own) {
		t.Error("two namespaces share a memory: the end of the first listing of one would be that of both")
	}
	if e.memory(scope{schema.GroupResource{Group: "example.org", Resource: "clusters"}, ""}, nil).resuming {
		t.Error("a kind without resume handlers marks objects")
	}
}

func TestCatchUp(t *testing.T) {
	body := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"resourceVersion": version}},
		}
	}
	tests := map[string]struct {
		reason string
		cached string
		want   string // the version of what is handled
		kept   bool
	}{
		"Malformed": {"versions that cannot be compared prove nothing", "x", "9", true},
		"None":      {"an object without a version proves nothing", "", "9", true},
		"Behind":    {"our write is not there yet", "8", "9", true},
		"There":     {"our write is there", "9", "9", false},
		"Longer":    {"versions are numbers, not texts", "10", "10", false},
		"Ahead":     {"an edit after our write is there", "11", "11", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &object{written: body("9").Object}
			if got := versionOf(o.newest(body(tc.cached))); got != tc.want {
				t.Errorf("%s: got version %s, want %s", tc.reason, got, tc.want)
			}
			if kept := o.written != nil; kept != tc.kept {
				t.Errorf("%s: kept: %v", tc.reason, kept)
			}
		})
	}
}

func TestProceed(t *testing.T) {
	cached := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "5"}}}
	o := &object{throttle: throttle{failures: 3}, blocked: "by something", written: map[string]any{}}
	o.proceed(cached, changes.Next{Gone: true}, cached)
	if !o.past(cached) || o.written != nil || o.throttle.failures != 0 || o.blocked != "" {
		t.Errorf("an object that is no more needs nothing but that: %+v", o)
	}
	if o.idle() {
		t.Error("this must be remembered until the cache knows it")
	}
}

// A pass ends beside a cache that moves on: what is kept of our write depends on what the cache has of this very object
// by then.
func TestProceedBesideTheCache(t *testing.T) {
	body := func(uid, version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version}},
		}
	}
	tests := map[string]struct {
		reason string
		now    *unstructured.Unstructured
		kept   bool
	}{
		"Same":      {"our write is yet to come", body("u1", "5"), true},
		"There":     {"our write has come meanwhile", body("u1", "9"), false},
		"Nothing":   {"whoever tells of the end forgets the object", nil, true},
		"Successor": {"the versions of another object say nothing about this one", body("u2", "10"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &object{}
			o.proceed(body("u1", "5"), changes.Next{Written: body("u1", "9").Object}, tc.now)
			if kept := o.written != nil; kept != tc.kept {
				t.Errorf("%s: kept: %v", tc.reason, kept)
			}
		})
	}
}
