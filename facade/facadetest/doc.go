// Package facadetest calls a handler as a function, in a test without a cluster: with an object, and with what else the
// handler needs, and tells what came of it.
//
//	func TestProvision(t *testing.T) {
//		db := &v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}}
//		got := facadetest.NewChange(db).Call(t.Context(), provision)
//		if got.Err != nil || got.Object.Status.Host == "" {
//			t.Errorf("got %v, host %q", got.Err, got.Object.Status.Host)
//		}
//	}
//
// It is apart because nothing of it may be linked into operators. It never imitates the engine: handlers are registered
// with a real operator and called by the engine's own passes, over an object on an API server in memory. It needs no
// test framework, and works under testing/synctest. A mistake in the use of this package is a panic that says what to
// write instead, so that no test takes it for an error of its handler.
//
// Neighbours: package memapi is the API server, to be used for whole operators; docs/testing.md teaches both.
package facadetest
