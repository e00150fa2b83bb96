package controller

import "testing"

// What a look costs at an object for which there is nothing to do: the most frequent event of all.
func BenchmarkPassAtRest(b *testing.B) {
	w := newWorld(b, creating("c"))
	w.pass()
	w.deliver()
	w.pass()
	b.ReportAllocs()
	for b.Loop() {
		w.controller.pass(b.Context(), request.NamespacedName)
	}
}
