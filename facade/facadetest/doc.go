// Package facadetest is the test kit. It calls a handler as a function, without a cluster, and returns the result. It
// also runs whole operators beside a test.
//
//	func TestProvision(t *testing.T) {
//		db := &v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}}
//		got := facadetest.NewChange(db).Call(t.Context(), provision)
//		if got.Err != nil || got.Object.Status.Host == "" {
//			t.Errorf("got %v, host %q", got.Err, got.Object.Status.Host)
//		}
//	}
//
// Start with [NewChange], [NewTask], [NewWatchEvent], [NewChildEvent] and [NewAdmission] for a handler, and with
// [Start] and [StartProgram] for an operator. Ginkgo suites pass GinkgoTB(). [Golden] compares the result of either
// with a file.
//
// The package is separate because operators must not link it. It does not imitate the engine: it registers handlers
// with a real operator and calls them by the engine's own passes, over an object on an API server in memory. It needs
// no test framework, and works under testing/synctest. Misuse of the kit panics with a message that says how to fix the
// call, so that no test mistakes it for an error of its handler.
//
// Package memapi is the API server in memory; it also serves whole operators. See docs/testing.md for how to test
// handlers.
package facadetest
