package facadetest

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// The kit's operator has a name that no other operator uses, because the kit hides the operator's stored state from
// tests.
const (
	operatorName = "operator.facadetest"
	finalizer    = operatorName + "/finalizer"
	// keepFinalizer is a finalizer that keeps an object that is being deleted, so that the test can see the last
	// writes.
	keepFinalizer = operatorName + "/keep"
)

// cluster is an API server in memory that stores only the object of a handler.
type cluster struct {
	server   *memapi.Server
	resource memapi.Resource
	writer   *patching.PatchWriter
	key      types.NamespacedName
	original map[string]any // the object at the start, without the operator's stored state

	mu             sync.Mutex
	bodyBeforeCall map[string]any // the same at the start of the present call, with later changes of others
}

// newCluster starts a server with the object. The writer uses its HTTP interface, so that the server validates and
// merges patches as in a cluster.
func newCluster(r memapi.Resource, body map[string]any) *cluster {
	object := unstructured.Unstructured{Object: body}
	c := &cluster{
		server: memapi.New(), resource: r,
		key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	c.server.Install(r)
	c.server.Put(r, body)
	reaching := patching.NewObjectClient(memapi.Config(c.server), &http.Client{Transport: c.server},
		r.GroupVersionResource())
	c.writer = &patching.PatchWriter{Client: reaching, FieldManager: operatorName}
	c.original = withoutSystemFields(c.storedBody())
	return c
}

// beginCall marks the start of a call. The patch of the call is computed from this state.
func (c *cluster) beginCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodyBeforeCall = withoutSystemFields(c.storedBody())
}

// editObject changes the stored object like another client. It also changes the state at the start of the call: the
// patch of the call must not contain changes of others.
func (c *cluster) editObject(transform patching.Transform) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.Edit(c.resource, c.key.Namespace, c.key.Name, func(body map[string]any) { err = transform(body) })
	if err != nil {
		return err
	}
	return transform(c.bodyBeforeCall)
}

// storedBody returns a copy of the stored object. Handlers may modify it.
func (c *cluster) storedBody() map[string]any {
	return c.server.Object(c.resource, c.key.Namespace, c.key.Name)
}

// Latest returns the stored object. It implements the cache of the operator, which is never stale here.
func (c *cluster) Latest(types.NamespacedName, types.UID) map[string]any { return c.storedBody() }

// writtenPatches returns the writes of the present call and those of all calls, as merge-patches.
func (c *cluster) writtenPatches() (now, all map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	after := withoutSystemFields(c.storedBody())
	now = patching.MergeDiff(c.bodyBeforeCall, after)
	all = patching.MergeDiff(c.original, after)
	return now, all
}

// withoutSystemFields returns a copy of the object without the fields of the API server and the operator's stored
// state. The original is not modified. An object without annotations must equal one with an empty map.
func withoutSystemFields(body map[string]any) map[string]any {
	own := (&unstructured.Unstructured{Object: body}).DeepCopy()
	own.SetResourceVersion("")
	own.SetGeneration(0)
	own.SetManagedFields(nil)
	annotations := own.GetAnnotations()
	maps.DeleteFunc(annotations, func(name, _ string) bool { return strings.HasPrefix(name, operatorName+"/") })
	if len(annotations) == 0 {
		annotations = nil
	}
	own.SetAnnotations(annotations)
	finalizers := slices.DeleteFunc(own.GetFinalizers(), func(name string) bool {
		return name == finalizer || name == keepFinalizer
	})
	if len(finalizers) == 0 {
		finalizers = nil
	}
	own.SetFinalizers(finalizers)
	return own.Object
}
