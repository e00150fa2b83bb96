package kopf_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestMethodsWithinPatch shows that a function of Patch that uses the handler's methods fails the handler, because it
// would wait for itself.
func TestMethodsWithinPatch(t *testing.T) {
	for name, use := range map[string]func(c *Change){
		"outcome": func(c *Change) { c.Outcome("a") },
		"result":  func(c *Change) { _, _ = kopf.Result[string](c, "other") },
		"set":     func(c *Change) { c.SetResult(1) },
		"field":   func(c *Change) { _, _ = kopf.FieldChange[int](c) },
		"patch":   func(c *Change) { c.Patch(func(*Widget) {}) },
		"sub":     func(c *Change) { c.Sub("b", succeed) },
	} {
		for by, patch := range map[string]func(c *Change){
			"Patch":    func(c *Change) { c.Patch(func(*Widget) { use(c) }) },
			"TryPatch": func(c *Change) { c.TryPatch(func(*Widget) error { use(c); return nil }) },
		} {
			t.Run(name+" in "+by, func(t *testing.T) {
				held := &subs{records: map[string]progress.Record{"a": {}}}
				a := parent(t, held, func(_ context.Context, c *Change) error { patch(c); return nil })
				if err := a.Outcome.Err; err == nil || !strings.Contains(err.Error(), "call that before Patch") {
					t.Errorf("the handler must fail: %v", err)
				}
			})
		}
	}
}

// TestMethodsBesidePatch shows that goroutines of a handler wait for one another, even while functions of Patch run.
func TestMethodsBesidePatch(t *testing.T) {
	held := &subs{records: map[string]progress.Record{"a": {}}}
	a := parent(t, held, func(_ context.Context, c *Change) error {
		var beside sync.WaitGroup
		for range 10 {
			c.Patch(func(w *Widget) {
				for range 10 {
					beside.Go(func() { c.Outcome("a"); c.Patch(func(w *Widget) { w.Spec.Size++ }) })
				}
				w.Spec.Owner = "bob"
			})
		}
		beside.Wait()
		return nil
	})
	if a.Outcome.Err != nil {
		t.Error(a.Outcome.Err)
	}
}

// TestAdmissionMethodsWithinPatch shows the same for admission: the request is denied, and does not hang.
func TestAdmissionMethodsWithinPatch(t *testing.T) {
	for name, patch := range map[string]func(a *Admission){
		"warning": func(a *Admission) { a.Patch(func(*Widget) { a.Warning("slow") }) },
		"latest":  func(a *Admission) { a.Patch(func(*Widget) { a.Latest() }) },
		"patch":   func(a *Admission) { a.Patch(func(*Widget) { a.Patch(func(*Widget) {}) }) },
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).Mutate("fn", func(_ context.Context, a *Admission) error { patch(a); return nil })
			verdict := verdictOf(t.Context(), t, op, request(nil))
			if verdict.Allowed || !strings.Contains(verdict.Status.Message, "call that before Patch") {
				t.Errorf("the request must be denied: %+v", verdict)
			}
		})
	}
}
