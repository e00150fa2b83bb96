package codec_test

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// fragileObject has a field that panics when it is encoded or decoded.
type fragileObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Size brokenMarshaler `json:"size"`
}

func (f *fragileObject) DeepCopyObject() runtime.Object { own := *f; return &own }

type brokenMarshaler struct{}

func (brokenMarshaler) MarshalJSON() ([]byte, error)     { panic("no encoder") }
func (*brokenMarshaler) UnmarshalJSON(text []byte) error { panic("no decoder of " + string(text)) }

// TestTypesThatPanic shows that a panic of a user's type ends neither the registration nor a handler that works
// without it.
func TestTypesThatPanic(t *testing.T) {
	c := codec.New[*fragileObject](reflect.TypeFor[fragileObject]())
	err := c.CheckValue(diff.Path{"size"}, "large")
	if err == nil || !strings.Contains(err.Error(), `field size of codec_test.fragile`) ||
		!strings.Contains(err.Error(), `panic: no decoder of "large"`) {
		t.Errorf("the error must name the field and the panic: got %v", err)
	}
	original := c.NewOriginal(&fragileObject{})
	lost := original.LostFields(func() (map[string]any, error) {
		t.Error("Lost must not read the object")
		return nil,
			nil
	})
	if lost != nil {
		t.Errorf("a type that cannot be encoded must not report lost changes: got %v", lost)
	}
}
