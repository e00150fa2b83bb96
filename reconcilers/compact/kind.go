package compact

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind whose objects have a protobuf form, as those that are built into Kubernetes do.
type Kind struct {
	typ reflect.Type // the struct of its objects
	of  schema.GroupVersionKind
}

// readable is what the Go types of such kinds have, with all else of objects.
type readable interface {
	runtime.Object
	Unmarshal(message []byte) error
}

// KindOf is the kind as the scheme has it; nil if its objects have no protobuf form, or one that is not laid out as
// those of Kubernetes are.
func KindOf(scheme *runtime.Scheme, of schema.GroupVersionKind) *Kind {
	object, err := scheme.New(of)
	if err != nil {
		return nil
	}
	if _, is := object.(readable); !is {
		return nil
	}
	// A type around one of Kubernetes' has the methods of that by embedding it, and knows nothing of the fields beside.
	typ := reflect.TypeOf(object).Elem()
	if typ.Kind() != reflect.Struct || !tagged(typ, reflect.TypeFor[metav1.ObjectMeta](), "bytes,1,") {
		return nil
	}
	return &Kind{typ: typ, of: of}
}

func tagged(typ, field reflect.Type, tag string) bool {
	found, is := typ.FieldByName(field.Name())
	return is && len(found.Index) == 1 && found.Type == field && strings.HasPrefix(found.Tag.Get("protobuf"), tag)
}

// Is tells whether a Go type, or a pointer to it, is that of the objects of the kind. Nil is of no type.
func (k *Kind) Is(typ reflect.Type) bool {
	if k == nil || typ == nil {
		return false
	}
	return typ == k.typ || typ.Kind() == reflect.Pointer && typ.Elem() == k.typ
}

// GroupVersionKind is that of the objects.
func (k *Kind) GroupVersionKind() schema.GroupVersionKind { return k.of }
