package controller

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
)

// BenchmarkPassAtRest measures a pass that has nothing to do, including its event: the most frequent case. With
// metrics, the engine also records since when changes are unhandled.
func BenchmarkPassAtRest(b *testing.B) {
	for name, unhandled := range map[string]*memory.Unhandled{"Unmeasured": nil, "Measured": {}} {
		b.Run(name, func(b *testing.B) {
			w := newObjectFixture(b, newCreateHandler("c"))
			w.pass()
			w.updateCache()
			w.pass()
			w.controller.unhandled = unhandled
			object := w.controller.cachedObject(request.NamespacedName)
			b.ReportAllocs()
			for b.Loop() {
				w.controller.NoteEvent("MODIFIED", object)
				w.controller.runPass(b.Context(), request.NamespacedName, new(bool))
			}
		})
	}
}
