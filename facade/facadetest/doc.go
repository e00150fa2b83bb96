// Package facadetest is the test kit: it calls a handler as a function, without a cluster, and tells what came of it;
// and it runs whole operators beside a test.
//
//	func TestProvision(t *testing.T) {
//		db := &v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}}
//		got := facadetest.NewChange(db).Call(t.Context(), provision)
//		if got.Err != nil || got.Object.Status.Host == "" {
//			t.Errorf("got %v, host %q", got.Err, got.Object.Status.Host)
//		}
//	}
//
// Begin with [NewChange], [NewTask], [NewWatchEvent], [NewChildEvent] and [NewAdmission] for a handler, with [Start]
// and [StartProgram] for an operator; Ginkgo suites pass GinkgoTB(). [Golden] compares the result of either with a
// file.
//
// It is apart because nothing of it may be linked into operators. It never imitates the engine: handlers are registered
// with a real operator and called by the engine's own passes, over an object on an API server in memory. It needs no
// test framework, and works under testing/synctest. A mistake in the call of a handler is a panic that says what to
// write instead, so that no test takes it for an error of its handler.
//
// Neighbours: package memapi is the API server, also for whole operators; docs/testing.md teaches the calls of
// handlers.
package facadetest
