package compact_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// BenchmarkNew is what it costs to keep an object that the API server has sent.
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

// BenchmarkObject is what it costs to read an object that is kept: as text, decoded, or opened for several who read it.
func BenchmarkObject(b *testing.B) {
	reads := map[string]func(o *compact.Object) error{
		"Text": func(o *compact.Object) error { _, err := o.Text(); return err },
		"Body": func(o *compact.Object) error { _, err := o.Body(); return err },
		"Open": func(o *compact.Object) error { _, err := o.Open(); return err },
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
