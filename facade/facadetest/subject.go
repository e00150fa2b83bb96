package facadetest

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// subject is the object that a handler is called for, as the test has given it.
type subject[T client.Object] struct {
	codec  *codec.Codec[T]
	kind   schema.GroupVersionKind
	scheme *runtime.Scheme
	given  map[string]any
	uid    types.UID
}

func newSubject[T client.Object](by string, object T, w *wishes) *subject[T] {
	typ := reflect.TypeOf(object)
	if typ == nil || typ.Kind() != reflect.Pointer || reflect.ValueOf(object).IsNil() {
		mistake("%s: the object is nil: give it one, such as &v1.Database{}", by)
	}
	s := &subject[T]{codec: codec.New[T](typ.Elem()), scheme: clientgoscheme.Scheme, uid: uidOf(object)}
	if w.client != nil {
		s.scheme = w.client.Scheme()
	}
	s.kind = kindOf(by, object, s.scheme)
	s.given = s.encode(by, object)
	return s
}

// uidOf gives an object without a uid one that is always the same.
func uidOf(object client.Object) types.UID {
	if uid := object.GetUID(); uid != "" {
		return uid
	}
	return types.UID("uid-of-" + object.GetNamespace() + "/" + object.GetName())
}

// unknownGroup is of types that no scheme knows.
const unknownGroup = "unknown.facadetest"

// kindOf is that of the object itself, or of its type.
func kindOf(by string, object client.Object, scheme *runtime.Scheme) schema.GroupVersionKind {
	given := object.GetObjectKind().GroupVersionKind()
	if given.Version != "" && given.Kind != "" {
		return given
	}
	if _, raw := object.(*unstructured.Unstructured); raw {
		mistake("%s: the unstructured object has no apiVersion and kind: set both", by)
	}
	if found, err := apiutil.GVKForObject(object, scheme); err == nil {
		return found
	}
	return schema.GroupVersionKind{
		Group: unknownGroup, Version: "v1", Kind: reflect.TypeOf(object).Elem().Name(),
	}
}

func (s *subject[T]) encode(by string, object T) map[string]any {
	tree, err := s.codec.Encode(object)
	if err != nil {
		mistake("%s: %v", by, err)
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return tree
}

// prototype is what the handler is registered with.
func (s *subject[T]) prototype() T {
	object, err := s.codec.Decode(map[string]any{})
	if err != nil {
		mistake("making an empty object: %v", err)
	}
	object.GetObjectKind().SetGroupVersionKind(s.kind)
	return object
}

// body is the object as a cluster would have it: whatever it lacks for that is made up.
func (s *subject[T]) body() map[string]any {
	body, _ := diff.Copy(s.given).(map[string]any)
	body["apiVersion"], body["kind"] = s.kind.ToAPIVersionAndKind()
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	for field, value := range map[string]any{
		"name": "object", "uid": string(s.uid), "generation": int64(1), "creationTimestamp": "2000-01-01T00:00:00Z",
	} {
		if metadata[field] == nil || metadata[field] == "" {
			metadata[field] = value
		}
	}
	return body
}

// changed is the object as the test has given it, with what was written since.
func (s *subject[T]) changed(merge map[string]any) T {
	patch := patching.Patch{Merge: merge}
	after, err := patch.ApplyTo(s.given)
	if err != nil {
		mistake("applying %v: %v", merge, err)
	}
	object, err := s.codec.Decode(after)
	if err != nil {
		mistake("the written object does not fit into its type any more: %v", err)
	}
	return object
}

// restored is the object as the test has given it, with what differs in the text from what a cluster would have.
func (s *subject[T]) restored(text []byte) T {
	var after map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &after); err != nil {
		mistake("the written value is not an object: %v", err)
	}
	merge, _ := patching.MergeDiff(s.body(), after)
	return s.changed(merge)
}

// resource is what the object is one of.
func (s *subject[T]) resource() memapi.Resource {
	plural, singular := meta.UnsafeGuessKindToResource(s.kind)
	return memapi.Resource{
		Group: s.kind.Group, Version: s.kind.Version, Kind: s.kind.Kind, Plural: plural.Resource,
		Singular: singular.Resource, Namespaced: s.isNamespaced(), StatusSubresource: true,
	}
}

func (s *subject[T]) isNamespaced() bool {
	return (&unstructured.Unstructured{Object: s.given}).GetNamespace() != ""
}

// discovered is the same as handlers get it.
func (s *subject[T]) discovered() *discovery.Resource {
	r := s.resource()
	return &discovery.Resource{
		GroupVersionKind: s.kind, Plural: r.Plural, Singular: strings.ToLower(s.kind.Kind), Namespaced: r.Namespaced,
		Subresources: []string{"status"}, Preferred: true,
		Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
	}
}
