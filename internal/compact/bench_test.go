package compact_test

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// BenchmarkNew measures the packing of an object from the API server.
func BenchmarkNew(b *testing.B) {
	for _, o := range objects.All {
		b.Run(o.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compact.New(o.Text, metav1.TypeMeta{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkObject measures reading a packed object: as text, decoded, or opened for several readers.
func BenchmarkObject(b *testing.B) {
	reads := map[string]func(o *compact.CachedObject) error{
		"Text": func(o *compact.CachedObject) error { _, err := o.Text(); return err },
		"Body": func(o *compact.CachedObject) error { _, err := o.Body(); return err },
		"Open": func(o *compact.CachedObject) error { _, err := o.Open(); return err },
	}
	for _, o := range objects.All {
		kept, err := compact.New(o.Text, metav1.TypeMeta{})
		if err != nil {
			b.Fatal(err)
		}
		for name, read := range reads {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := read(kept); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkMessage measures the same for a protobuf message: packing it with many others of its kind, opening it, and
// decoding it into its Go type or into maps.
func BenchmarkMessage(b *testing.B) {
	var pod corev1.Pod
	if err := json.Unmarshal(objects.Pod.Text, &pod); err != nil {
		b.Fatal(err)
	}
	message, err := pod.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	packer := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind))
	var kept *compact.CachedObject
	for range 100 {
		if kept, err = packer.NewFromMessage(message); err != nil {
			b.Fatal(err)
		}
	}
	reads := map[string]func() error{
		"Keep": func() error { _, err := packer.NewFromMessage(message); return err },
		"Open": func() error { _, err := kept.Open(); return err },
		"Into": func() error {
			opened, err := kept.Open()
			if err == nil && !opened.DecodeInto(&corev1.Pod{}) {
				err = errUndecodable
			}
			return err
		},
		"Body": func() error { _, err := kept.Body(); return err },
	}
	for name, read := range reads {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var errUndecodable = errors.New("decoding failed")
