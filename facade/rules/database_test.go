package rules_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Database has a field of every kind of type.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DatabaseSpec `json:"spec"`
}

// DatabaseSpec is the specification of a Database.
type DatabaseSpec struct {
	Limits `json:",inline"`

	Size      int32             `json:"size"`
	Ratio     float64           `json:"ratio,omitempty"`
	Owner     string            `json:"owner,omitempty"`
	Protected bool              `json:"protected,omitempty"`
	Replicas  *int32            `json:"replicas,omitempty"`
	Storage   resource.Quantity `json:"storage,omitempty"`
	Port      intstr.IntOrString
	Since     *metav1.Time           `json:"since,omitempty"`
	Timeout   metav1.Duration        `json:"timeout,omitempty"`
	Seed      []byte                 `json:"seed,omitempty"`
	Nodes     []Node                 `json:"nodes,omitempty"`
	ByZone    map[string]Node        `json:"byZone,omitempty"`
	Template  corev1.PodTemplateSpec `json:"template,omitempty"`
	Extra     runtime.RawExtension   `json:"extra,omitempty"`
	Raw       json.RawMessage        `json:"raw,omitempty"`
	Anything  any                    `json:"anything,omitempty"`
	Hyphens   Hyphens                `json:"hyphens,omitempty"`
	Counted   int64                  `json:"counted,string,omitempty"`
	Backoff   time.Duration          `json:"backoff,omitempty"`
	Hidden    string                 `json:"-"`
}

// Limits is an embedded struct.
type Limits struct {
	Most int `json:"most,omitempty"`
}

// Node is a recursive type.
type Node struct {
	Name     string `json:"name"`
	Weight   uint8  `json:"weight,omitempty"`
	Children []Node `json:"children,omitempty"`
}

// Hyphens has fields that can only be read by index.
type Hyphens struct {
	A string `json:"a-b,omitempty"`
	C string `json:"c,omitempty"`
}

// DeepCopyObject returns a shallow copy, which is sufficient for the tests.
func (d *Database) DeepCopyObject() runtime.Object {
	clone := *d
	return &clone
}

// sized returns a database of the given size.
func sized(size int32) *Database { return &Database{Spec: DatabaseSpec{Size: size}} }

// raw returns an object with the given spec in JSON.
func raw(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := `{"apiVersion":"example.org/v1","kind":"Database","metadata":{"name":"d"},"spec":` + spec + `}`
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return object
}
