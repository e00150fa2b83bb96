package cause_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// withLastHandled adds the essence of before to the object, as its last-handled configuration.
func withLastHandled(b *testing.B, body, before object) object {
	b.Helper()
	essence, err := newLens().New(before)
	if err != nil {
		b.Fatal(err)
	}
	patch := object{}
	if err := (diffbase.Annotations{}).Store(patch, body, essence); err != nil {
		b.Fatal(err)
	}
	metadata := body["metadata"].(object)
	annotations, _ := metadata["annotations"].(object)
	if annotations == nil {
		annotations = object{}
		metadata["annotations"] = annotations
	}
	for key, value := range patch["metadata"].(object)["annotations"].(object) {
		annotations[key] = value
	}
	return body
}

// BenchmarkDetect measures the steps from an object to its cause: the present essence, the last-handled one, and their
// difference.
func BenchmarkDetect(b *testing.B) {
	for _, o := range objects.All {
		for name, bench := range map[string]struct {
			body object
			want cause.Reason
		}{
			"Created":   {o.Tree(), cause.Create},
			"Updated":   {withLastHandled(b, o.Changed(), o.Tree()), cause.Update},
			"Unchanged": {withLastHandled(b, o.Tree(), o.Tree()), cause.Noop},
		} {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if got := detected(b, bench.body); got.Reason != bench.want {
						b.Fatalf("got %s, want %s", got.Reason, bench.want)
					}
				}
			})
		}
	}
}

func detected(b *testing.B, body object) *cause.Cause {
	lens := newLens()
	present, err := lens.New(body)
	if err != nil {
		b.Fatal(err)
	}
	last, err := lens.Last(body, present)
	if err != nil {
		b.Fatal(err)
	}
	return cause.Detect(cause.Observation{Body: body, Old: last, New: present})
}
