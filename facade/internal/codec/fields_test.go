package codec_test

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

// unusual has kinds of fields that are rare in API types but that encoding/json supports.
type unusual struct {
	corev1.ConfigMap

	Spec struct {
		*Embedded
		Texts
		Level

		Inline   Embedded             `json:",inline"`
		Dash     string               `json:"-,"` //nolint:staticcheck // the key is a dash
		Size     string               `json:"size"`
		Raw      runtime.RawExtension `json:"raw"`
		Port     *intstr.IntOrString  `json:"port"`
		Memory   resource.Quantity    `json:"memory"`
		Limits   corev1.ResourceList  `json:"limits"`
		Since    *metav1.Time         `json:"since"`
		Interval metav1.Duration      `json:"interval"`
		Key      []byte               `json:"key"`
		Text     int                  `json:"text,string"`
		Tree     tree                 `json:"tree"`
		Any      map[string]any       `json:"any"`
	} `json:"spec"`
}

type (
	Texts map[string]string
	Level string

	// Embedded has a field that the struct around it hides.
	Embedded struct {
		Size  int    `json:"size"`
		Count *int32 `json:"count"`
	}

	tree struct {
		Left  *tree            `json:"left"`
		Named map[string]*tree `json:"named"`
	}
)

func unusualCodec() *codec.Codec[*unusual] { return codec.New[*unusual](reflect.TypeFor[unusual]()) }

// TestCheckFieldAcceptsFields shows that CheckField accepts every kind of field. A wrong error would keep a program
// from starting.
func TestCheckFieldAcceptsFields(t *testing.T) {
	for _, text := range []string{
		"data.a", "metadata.labels.a", "spec.count", "spec.Texts.a", "spec.Level", "spec.Inline.count", "spec.-",
		"spec.raw.any.thing", "spec.port", `spec.limits."nvidia.com/gpu"`, "spec.since", "spec.interval", "spec.key",
		"spec.tree.left.named.a.left", "spec.any.a.b",
	} {
		path, err := codec.ParsePath(text)
		if err == nil {
			err = unusualCodec().CheckField(path)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestCheckValueAcceptsValues(t *testing.T) {
	for text, values := range map[string][]any{
		"spec.size":     {"large"},
		"spec.Level":    {Level("high"), "low"},
		"spec.count":    {3, 3.0},
		"spec.raw":      {map[string]any{"a": 1}, "text"},
		"spec.port":     {80, "80%", intstr.FromString("http")},
		"spec.memory":   {"1Gi", 1, 1.5, resource.MustParse("1Gi")},
		"spec.limits":   {map[string]string{"cpu": "100m"}, corev1.ResourceList{}},
		"spec.since":    {metav1.Unix(1, 0), time.Unix(1, 0), "2026-01-01T00:00:00+02:00"},
		"spec.interval": {"5m", metav1.Duration{Duration: time.Minute}},
		"spec.key":      {[]byte("secret")},
		"spec.text":     {"10"},
		"spec.any":      {map[string]any{"a": []int{1}}},
	} {
		path, err := codec.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range values {
			encoded, err := codec.EncodeValue(value)
			if err == nil {
				err = unusualCodec().CheckValue(path, encoded)
			}
			if err != nil {
				t.Errorf("%s: %v: %v", text, value, err)
			}
		}
	}
}
