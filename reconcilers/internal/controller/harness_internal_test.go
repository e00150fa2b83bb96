package controller

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
	"github.com/kopf-runtime/kopf-runtime/test/logkeys"
)

const (
	prefix         = "op.example.org"
	lastHandledKey = prefix + "/last-handled-configuration"
)

var widgets = discovery.Resource{
	GroupVersionKind: schema.GroupVersionKind{
		Group: "example.org", Version: "v1", Kind: "Widget",
	}, Plural: "widgets", Namespaced: true,
}

// api is an API server with one object, which reaches the cache when the test says so.
type api struct {
	writeErr   error  // the error of all writes, or nil
	afterWrite func() // runs between a write and its response

	mu      sync.Mutex
	object  map[string]any
	version int
	writes  int
}

func (a *api) Get(_ context.Context, _ types.NamespacedName, take func([]byte) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.object == nil {
		return notFound()
	}
	return take(encodeObject(a.object))
}

func (a *api) Patch(_ context.Context, _ types.NamespacedName, r patching.RawPatch, take func([]byte) error) error {
	defer func() {
		if a.afterWrite != nil {
			a.afterWrite()
		}
	}()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes++
	if a.writeErr != nil {
		return a.writeErr
	}
	if a.object == nil {
		return notFound()
	}
	if r.Status {
		panic("the kind has no status subresource")
	}
	return take(encodeObject(a.merge(r.Data)))
}

func encodeObject(object map[string]any) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}

// merge applies a merge patch and returns the object. A patch without effect keeps the version. Without its last
// finalizer a deleted object is removed; the response then has its old version.
func (a *api) merge(data []byte) map[string]any {
	held, _ := json.Marshal(a.object)
	merged, err := jsonpatch.MergePatch(held, data)
	if err != nil {
		panic(err)
	}
	if jsonpatch.Equal(held, merged) {
		return a.object
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(merged); err != nil {
		panic(err)
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		a.object = nil
		return obj.Object
	}
	a.version++
	obj.SetResourceVersion(strconv.Itoa(a.version))
	a.object = obj.Object
	return a.object
}

// edit patches the object as a user does.
func (a *api) edit(patch string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.merge([]byte(patch))
}

func notFound() error { return apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "a") }

func unavailable() error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "out of order"},
	}
}

// objectFixture is one kind with one object, its cache and its handlers.
type objectFixture struct {
	*api
	t          testing.TB
	controller *Controller
	cache      toolscache.Indexer

	mu       sync.Mutex
	calls    []string
	logLines []string
}

var request = source.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}

// newObjectFixture puts the object into the server and the cache. Handlers record their calls; a test may set more.
func newObjectFixture(t testing.TB, own ...*handlers.Handler) *objectFixture {
	t.Helper()
	w := &objectFixture{t: t, api: &api{}, cache: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc,
		toolscache.Indexers{})}
	for _, h := range own {
		if h.Call == nil {
			h.Call = func(context.Context, *handlers.Invocation) error { return nil }
		}
		act := h.Call
		h.Call = func(ctx context.Context, c *handlers.Invocation) error {
			w.recordCall(h.ID)
			return act(ctx, c)
		}
	}
	deps := &Dependencies{
		Settings: kind.Settings{
			Name: prefix, Prefix: prefix, Finalizer: prefix + "/finalizer", BoundTo: prefix + "/handled-uid",
			Diffbase: diffbase.Annotations{Prefix: prefix}, Progress: progress.Annotations{Prefix: prefix},
		}.WithDefaults(),
		Log: w.errorLogger(), Events: posting.New(nil, posting.Options{Component: prefix}), Memory: &memory.Registry{},
		Writer: patching.PatchWriter{Client: w.api},
	}
	var all []*adapters.HandlerChain
	for _, h := range own {
		all = append(all, adapters.New(h, nil))
	}
	w.controller = newController(deps, Turn{}, widgets, memory.KindScope{Resource: widgets.GroupResource()}, all, all,
		newWorkers(deps, widgets))
	w.controller.store = w.cache
	w.create("u1")
	w.updateCache()
	return w
}

// cached returns the cached object.
func (w *objectFixture) cached() *compact.CachedObject {
	return w.controller.cachedObject(request.NamespacedName)
}

// create puts a new object into the server, but not into the cache.
func (w *objectFixture) create(uid string) {
	w.version++
	w.object = map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "spec": map[string]any{"size": int64(1)},
		"metadata": map[string]any{
			"namespace": "ns", "name": "a", "uid": uid, "resourceVersion": strconv.Itoa(w.version),
		},
	}
}

// updateCache updates the cache to the state of the server.
func (w *objectFixture) updateCache() {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	var obj *compact.CachedObject
	if w.object != nil {
		obj = compacttest.NewObject(w.object)
	}
	found, _, _ := w.cache.GetByKey(request.String())
	if old, ok := found.(*compact.CachedObject); ok && (obj == nil || obj.GetUID() != old.GetUID()) {
		if err := w.cache.Delete(old); err != nil {
			w.t.Fatal(err)
		}
		w.controller.NoteDeleted(old)
	}
	if obj != nil {
		if err := w.cache.Update(obj); err != nil {
			w.t.Fatal(err)
		}
	}
}

// updateCacheWithEvent updates the cache and delivers the event.
func (w *objectFixture) updateCacheWithEvent() {
	w.updateCache()
	w.controller.NoteEvent("MODIFIED", w.cached())
}

// queue installs a queue, which receives the requested passes.
func (w *objectFixture) queue() *source.PriorityQueue {
	limiter := workqueue.DefaultTypedControllerRateLimiter[source.Request]()
	waiting := source.NewQueue(w.controller.workers.slots, limiter)
	w.t.Cleanup(waiting.ShutDown)
	w.controller.queue.Store(waiting)
	return waiting
}

func (w *objectFixture) recordCall(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, id)
}

// errorLogger keeps errors only, which have no level. Other lines do not matter here.
func (w *objectFixture) errorLogger() logr.Logger {
	return logkeys.Unique(w.t, funcr.New(func(_, line string) {
		if w.mu.Lock(); !strings.Contains(line, `"level"=`) {
			w.logLines = append(w.logLines, line)
		}
		w.mu.Unlock()
	}, funcr.Options{}))
}

func newCreateHandler(id string) *handlers.Handler {
	return &handlers.Handler{ID: id, Reason: cause.Create}
}

func newResumeHandler(id string) *handlers.Handler { return &handlers.Handler{ID: id, Initial: true} }

func explain(t *testing.T, reason string) {
	if t.Failed() {
		t.Log("the reason of this case:", reason)
	}
}
