package codec_test

import (
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// database is the Go type of the custom resource with most of its fields, as a typical project declares it.
type database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   databaseSpec   `json:"spec"`
	Status databaseStatus `json:"status"`
}

func (d *database) DeepCopyObject() runtime.Object { return codec.DeepCopy(d) }

type databaseSpec struct {
	Engine     string                      `json:"engine"`
	Version    string                      `json:"version"`
	Owner      string                      `json:"owner"`
	Replicas   int32                       `json:"replicas"`
	Paused     bool                        `json:"paused"`
	Storage    databaseStorage             `json:"storage"`
	Resources  corev1.ResourceRequirements `json:"resources"`
	Users      []databaseUser              `json:"users"`
	Parameters map[string]string           `json:"parameters"`
	Extensions []string                    `json:"extensions"`
}

type databaseStorage struct {
	Size      resource.Quantity `json:"size"`
	Class     string            `json:"class"`
	Encrypted bool              `json:"encrypted"`
}

type databaseUser struct {
	Name        string   `json:"name"`
	Privileges  []string `json:"privileges"`
	SecretName  string   `json:"secretName"`
	Connections int      `json:"connections"`
}

type databaseStatus struct {
	Phase              string             `json:"phase"`
	ObservedGeneration int64              `json:"observedGeneration"`
	Host               string             `json:"host"`
	Port               int32              `json:"port"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// decodingBenchmark holds each method of a codec that returns a typed object, and the object to measure with.
type decodingBenchmark struct {
	name   string
	object objects.Object
	decode map[string]func(body map[string]any, text []byte) error
}

func decodingBy[T client.Object](name string, o objects.Object, typ reflect.Type) decodingBenchmark {
	c, asked := codec.New[T](typ), &cause.Cause{Object: jsontext.NewFromValue(o.Tree())}
	return decodingBenchmark{name: name, object: o, decode: map[string]func(map[string]any, []byte) error{
		"Decode": func(body map[string]any, _ []byte) error { return requireDecoded(c.Decode(body)) },
		"DecodeFrom": func(_ map[string]any, text []byte) error {
			given := jsontext.New(text)
			return requireDecoded(c.DecodeFrom(given, func() (map[string]any, error) { return nil, errUndecodable }))
		},
		"DecodeForFilter/First": func(body map[string]any, _ []byte) error {
			return requireDecoded(c.DecodeForFilter(&cause.Cause{Object: jsontext.NewFromValue(body)}))
		},
		"DecodeForFilter/Next": func(map[string]any, []byte) error { return requireDecoded(c.DecodeForFilter(asked)) },
		"DecodeOld":            func(body map[string]any, _ []byte) error { return requireDecoded(c.DecodeOld(body)) },
	}}
}

var errUndecodable = errors.New("the object does not decode")

// requireDecoded returns an error if the decoded object does not have a uid.
func requireDecoded[T client.Object](object T, err error) error {
	if err == nil && object.GetUID() == "" {
		err = errUndecodable
	}
	return err
}

// BenchmarkCodec measures the cost of decoding for a handler and a filter, with a Go type and with the raw object.
func BenchmarkCodec(b *testing.B) {
	raw := reflect.TypeFor[unstructured.Unstructured]()
	for _, d := range []decodingBenchmark{
		decodingBy[*database]("Typed", objects.CustomResource, reflect.TypeFor[database]()),
		decodingBy[*unstructured.Unstructured]("Unstructured", objects.CustomResource, raw),
		decodingBy[*corev1.Pod]("Typed", objects.Pod, reflect.TypeFor[corev1.Pod]()),
		decodingBy[*unstructured.Unstructured]("Unstructured", objects.Pod, raw),
	} {
		body := d.object.Tree()
		for door, decode := range d.decode {
			b.Run(d.object.Name+"/"+d.name+"/"+door, func(b *testing.B) {
				if err := decode(body, d.object.Text); err != nil { // the JSON packages remember the type
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := decode(body, d.object.Text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
