package changes_test

import "testing"

// TestUndone is about writes that the API server takes and somebody undoes at once, such as an admission webhook.
func TestUndone(t *testing.T) {
	run(t, map[string]scenario{
		"Finalizer": {"it ends in an error, so that the object is delayed: not in a loop without end", func(w *world) {
			w.webhook = func(body map[string]any) { delete(body["metadata"].(map[string]any), "finalizers") }
			next, err := w.start(onCreate("a", ok), onDelete("d", ok)).pass()
			if err == nil || next.After != nil {
				w.t.Errorf("want an error that delays the object, got %v and %+v", err, next)
			}
			w.wantCalls("no handler may be called while nothing holds the object")
		}},
	})
}
