package changes_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// memoryWriter accepts every patch and returns the patched object.
type memoryWriter struct{ body map[string]any }

func (w *memoryWriter) Get(context.Context, schema.GroupVersionKind, client.ObjectKey) (map[string]any, error) {
	return w.body, nil
}

func (w *memoryWriter) ApplyRetrying(
	_ context.Context, target patching.Target, patch patching.Patch,
) (result patching.WriteResult, err error) {
	result.Body, err = patch.ApplyTo(target.Body)
	w.body = result.Body
	return result, err
}

func benchmarked() (*changes.ChangeHandling, *memoryWriter) {
	store, writer := progress.Annotations{Prefix: prefix, Bound: boundToAnnotation}, &memoryWriter{}
	essences := diffbase.Annotations{Prefix: prefix, Bound: boundToAnnotation}
	own := testSettings()
	own.Progress = store
	return &changes.ChangeHandling{
		Lens:           &cause.Lens{Diffbase: essences, Progress: store},
		InterimStorage: changes.NewInterimStorage(prefix, boundToAnnotation),
		HandledKind:    kind.HandledKind{Settings: own, Writer: writer},
		Handlers:       []*adapters.HandlerChain{adapters.New(onCreate("a", ok), nil)},
	}, writer
}

// BenchmarkPass measures one pass over one object: with one handler to call, and with nothing left to do.
func BenchmarkPass(b *testing.B) {
	handling, writer := benchmarked()
	pass := func(b *testing.B, body map[string]any) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := handling.Reconcile(b.Context(), jsontext.NewFromValue(body), &changes.Memory{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("OneHandler", func(b *testing.B) { pass(b, object()) })
	b.Run("NothingToDo", func(b *testing.B) { pass(b, writer.body) })
}
