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
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// subject is the object for which a handler is called, as the test has passed it.
type subject[T client.Object] struct {
	codec  *codec.Codec[T]
	kind   schema.GroupVersionKind
	scheme *runtime.Scheme
	body   map[string]any // the object as JSON values, without made-up fields
	uid    types.UID
}

// newSubject encodes the object of the test. It panics for a nil object.
func newSubject[T client.Object](by string, object T, w *optionValues) *subject[T] {
	typ := reflect.TypeOf(object)
	if typ == nil || typ.Kind() != reflect.Pointer || reflect.ValueOf(object).IsNil() {
		panicMisuse("%s: the object is nil: give it one, such as &v1.Database{}", by)
	}
	s := &subject[T]{codec: codec.New[T](typ.Elem()), scheme: clientgoscheme.Scheme, uid: uidOf(object)}
	if w.client != nil {
		s.scheme = w.client.Scheme()
	}
	s.kind = kindOf(by, object, s.scheme)
	s.body = s.encodeObject(by, object)
	return s
}

// uidOf returns the uid of the object, or a made-up one that only depends on its name. [NewMemo] relies on this to find
// the same object.
func uidOf(object client.Object) types.UID {
	if uid := object.GetUID(); uid != "" {
		return uid
	}
	return types.UID("uid-of-" + object.GetNamespace() + "/" + object.GetName())
}

// unknownGroup is the API group of Go types that no scheme contains.
const unknownGroup = "unknown.facadetest"

// kindOf returns the kind of the object, or else that of its type in the scheme. A type that is not in the scheme gets
// a kind with its Go name, because most tests of handlers do not depend on the kind.
func kindOf(by string, object client.Object, scheme *runtime.Scheme) schema.GroupVersionKind {
	given := object.GetObjectKind().GroupVersionKind()
	if given.Version != "" && given.Kind != "" {
		return given
	}
	if _, raw := object.(*unstructured.Unstructured); raw {
		panicMisuse("%s: the unstructured object has no apiVersion and kind: set both", by)
	}
	if found, err := apiutil.GVKForObject(object, scheme); err == nil {
		return found
	}
	return schema.GroupVersionKind{
		Group: unknownGroup, Version: "v1", Kind: reflect.TypeOf(object).Elem().Name(),
	}
}

// encodeObject returns the object as JSON values, without the null creationTimestamp that Go types encode.
func (s *subject[T]) encodeObject(by string, object T) map[string]any {
	text, err := s.codec.JSONText(object)
	if err != nil {
		panicMisuse("%s: %v", by, err)
	}
	tree, err := jsontext.DecodeObject(text)
	if err != nil {
		panicMisuse("%s: %v", by, err)
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return tree
}

// newPrototype returns an empty object of the kind, with which handlers are registered.
func (s *subject[T]) newPrototype() T {
	object, err := s.codec.Decode(map[string]any{})
	if err != nil {
		panicMisuse("making an empty object: %v", err)
	}
	object.GetObjectKind().SetGroupVersionKind(s.kind)
	return object
}

// bodyAsStored returns the object as an API server would store it. Missing system fields have fixed values, so that
// they are the same in each run.
func (s *subject[T]) bodyAsStored() map[string]any {
	body, _ := diff.DeepCopy(s.body).(map[string]any)
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

// withMergePatch returns the object of the test with the merge-patch applied. It does not have the made-up fields of
// the stored object.
func (s *subject[T]) withMergePatch(merge map[string]any) T {
	patch := patching.Patch{Merge: merge}
	after, err := patch.ApplyTo(s.body)
	if err != nil {
		panicMisuse("applying %v: %v", merge, err)
	}
	object, err := s.codec.Decode(after)
	if err != nil {
		panicMisuse("the written object does not fit into its type any more: %v", err)
	}
	return object
}

// withoutAddedFields returns the object of the test with the changes that the text has in comparison to the stored
// object. In this way, the made-up fields are removed again.
func (s *subject[T]) withoutAddedFields(text []byte) T {
	var after map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &after); err != nil {
		panicMisuse("the written value is not an object: %v", err)
	}
	merge := patching.MergeDiff(s.bodyAsStored(), after)
	return s.withMergePatch(merge)
}

// servedResource returns the resource under which the API server in memory stores the object. The plural is guessed.
// The object's own namespace decides whether the resource is namespaced.
func (s *subject[T]) servedResource() memapi.Resource {
	plural, singular := meta.UnsafeGuessKindToResource(s.kind)
	return memapi.Resource{
		Group: s.kind.Group, Version: s.kind.Version, Kind: s.kind.Kind, Plural: plural.Resource,
		Singular: singular.Resource, Namespaced: s.isNamespaced(), StatusSubresource: true,
	}
}

// isNamespaced reports whether the test has given the object a namespace.
func (s *subject[T]) isNamespaced() bool {
	return (&unstructured.Unstructured{Object: s.body}).GetNamespace() != ""
}

// discoveredResource returns the same resource in the form of the engine's discovery.
func (s *subject[T]) discoveredResource() *discovery.Resource {
	r := s.servedResource()
	return &discovery.Resource{
		GroupVersionKind: s.kind, Plural: r.Plural, Singular: strings.ToLower(s.kind.Kind), Namespaced: r.Namespaced,
		Subresources: []string{"status"}, Preferred: true,
		Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
	}
}
