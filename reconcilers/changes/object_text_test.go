package changes_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// TestTextOfTheObject shows that a handler after a change does not get the text of the object: functions decode the
// text themselves, and it lacks the changes of earlier handlers.
func TestTextOfTheObject(t *testing.T) {
	var texts []string
	look := func(_ context.Context, c *handlers.Invocation) error {
		texts = append(texts, string(c.EncodedObject.Text()))
		return nil
	}
	patch := func(_ context.Context, c *handlers.Invocation) error {
		return c.Writer.AddTransform(func(body map[string]any) error {
			body["spec"] = map[string]any{"changed": true}
			return nil
		})
	}
	w := newHarness(t)
	p := w.start(onCreate("a", look), onCreate("b", patch), onCreate("c", look))
	opened, err := compacttest.NewObject(w.stored()).Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.handling.Reconcile(p.ctx, opened, &p.memory); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{string(opened.Text()), ""}, texts); d != "" {
		t.Errorf("-want, +got\n%s", d)
	}
}
