package compact

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MessageKind is a kind whose objects have a protobuf form, such as the kinds that are built into Kubernetes.
type MessageKind struct {
	goType reflect.Type // the struct of its objects
	gvk    schema.GroupVersionKind
}

// protobufObject is implemented by the Go types of such kinds.
type protobufObject interface {
	runtime.Object
	Unmarshal(message []byte) error
}

// KindOf returns the kind if it is in the scheme and its objects have a protobuf form with the layout of Kubernetes.
// Otherwise, it returns nil.
func KindOf(scheme *runtime.Scheme, of schema.GroupVersionKind) *MessageKind {
	object, err := scheme.New(of)
	if err != nil {
		return nil
	}
	if _, is := object.(protobufObject); !is {
		return nil
	}
	// A user's type that embeds a type of Kubernetes inherits its methods, which ignore the additional fields. So the
	// metadata must be a direct field with the usual tag.
	typ := reflect.TypeOf(object).Elem()
	if typ.Kind() != reflect.Struct || !hasTaggedField(typ, reflect.TypeFor[metav1.ObjectMeta](), "bytes,1,") {
		return nil
	}
	return &MessageKind{goType: typ, gvk: of}
}

// hasTaggedField reports whether the type itself declares this field, with a protobuf tag that has the prefix tag.
func hasTaggedField(typ, field reflect.Type, tag string) bool {
	found, is := typ.FieldByName(field.Name())
	return is && len(found.Index) == 1 && found.Type == field && strings.HasPrefix(found.Tag.Get("protobuf"), tag)
}

// MatchesType reports whether a Go type, or a pointer to it, is the type of the kind's objects. It is false for a nil
// kind.
func (k *MessageKind) MatchesType(typ reflect.Type) bool {
	if k == nil || typ == nil {
		return false
	}
	return typ == k.goType || typ.Kind() == reflect.Pointer && typ.Elem() == k.goType
}

// GroupVersionKind returns the API version and name of the kind.
func (k *MessageKind) GroupVersionKind() schema.GroupVersionKind { return k.gvk }
