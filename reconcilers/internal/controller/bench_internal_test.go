package controller

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
)

// What a look costs at an object for which there is nothing to do, with the event before it: the most frequent event
// of all. The metrics want to know since when changes wait.
func BenchmarkPassAtRest(b *testing.B) {
	for name, unhandled := range map[string]*memory.Unhandled{"Unmeasured": nil, "Measured": {}} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, creating("c"))
			w.pass()
			w.deliver()
			w.pass()
			w.controller.unhandled = unhandled
			object := w.controller.cached(request.NamespacedName)
			b.ReportAllocs()
			for b.Loop() {
				w.controller.Seen("MODIFIED", object)
				w.controller.pass(b.Context(), request.NamespacedName)
			}
		})
	}
}
