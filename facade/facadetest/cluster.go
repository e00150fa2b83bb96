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
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/rawclient"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// The operator of the kit is one that nobody else has: what it keeps on the object is no news to a test.
const (
	operator  = "operator.facadetest"
	finalizer = operator + "/finalizer"
	// keeping holds an object that is being deleted, so that what was written to it at last can be seen.
	keeping = operator + "/keep"
)

// cluster is an API server in memory that has the object of a handler, and nothing else.
type cluster struct {
	server   *memapi.Server
	resource memapi.Resource
	writer   *patching.Writer
	key      types.NamespacedName
	original map[string]any // as it was at the beginning, without what the operator keeps

	mu     sync.Mutex
	before map[string]any // the same, at the beginning of the present call, with what others have done since
}

func newCluster(r memapi.Resource, body map[string]any) *cluster {
	object := unstructured.Unstructured{Object: body}
	c := &cluster{
		server: memapi.New(), resource: r,
		key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	c.server.Install(r)
	c.server.Put(r, body)
	reaching := rawclient.New(memapi.Config(c.server), &http.Client{Transport: c.server}, r.GroupVersionResource())
	c.writer = &patching.Writer{Client: reaching, FieldManager: operator}
	c.original = bare(c.body())
	return c
}

// begin is the beginning of a call.
func (c *cluster) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = bare(c.body())
}

// edit changes the object as somebody else would.
func (c *cluster) edit(transform patching.Transform) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.Edit(c.resource, c.key.Namespace, c.key.Name, func(body map[string]any) { err = transform(body) })
	if err != nil {
		return err
	}
	return transform(c.before)
}

// body is the object as it is stored now.
func (c *cluster) body() map[string]any {
	body := c.server.Object(c.resource, c.key.Namespace, c.key.Name)
	copied, _ := diff.Copy(body).(map[string]any)
	return copied
}

// Latest is what a cache of the operator would have.
func (c *cluster) Latest(types.NamespacedName, types.UID) map[string]any { return c.body() }

// written is what was written by the present call, and by all of them, as merge-patches.
func (c *cluster) written() (now, all map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	after := bare(c.body())
	now, _ = patching.MergeDiff(c.before, after)
	all, _ = patching.MergeDiff(c.original, after)
	return now, all
}

// bare is an object without what is the operator's and the server's own.
func bare(body map[string]any) map[string]any {
	own := maps.Clone(body)
	metadata, _ := body["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		delete(metadata, field)
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations = maps.Clone(annotations)
		maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, operator+"/") })
		put(metadata, "annotations", annotations, len(annotations))
	}
	if finalizers, ok := metadata["finalizers"].([]any); ok {
		finalizers = slices.DeleteFunc(slices.Clone(finalizers), func(name any) bool {
			return name == finalizer || name == keeping
		})
		put(metadata, "finalizers", finalizers, len(finalizers))
	}
	own["metadata"] = metadata
	return own
}

// put leaves out what is empty.
func put(metadata map[string]any, field string, value any, size int) {
	if metadata[field] = value; size == 0 {
		delete(metadata, field)
	}
}
