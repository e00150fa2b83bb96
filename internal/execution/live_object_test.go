package execution_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// live is the object of a background function, which may be deleted.
type live struct {
	handlers.LiveObject

	body object
}

func (l *live) Object() *jsontext.LazyObject { return jsontext.NewFromValue(l.body) }

// TestAttemptInTheBackground shows that a background function changes the newest state of the object, and that its
// written changes are dropped, since it may run forever.
func TestAttemptInTheBackground(t *testing.T) {
	newest := &live{body: object{"others": int64(1)}}
	a := newAttempt()
	a.Call.Cause, a.Call.LiveObject = &cause.Cause{Object: jsontext.NewFromValue(object{"begun": true})}, newest
	for _, step := range []struct {
		reason string
		body   object
		want   object
	}{
		{"a change applies to the newest state of the object",
			object{"others": int64(1)}, object{"others": int64(1), "own": true}},
		{"a further change applies to the newer state of the object",
			object{"others": int64(2)}, object{"others": int64(2), "own": true}},
		{"after a deletion, a change applies to the first state of the object",
			nil, object{"begun": true, "own": true}},
	} {
		newest.body = step.body
		if err := a.AddTransform(setting("own")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.want, a.Call.Object); d != "" {
			t.Errorf("%s: -want, +got:\n%s", step.reason, d)
		}
	}
	a.MarkWritten(2)
	if remembered, made := len(a.UnwrittenTransforms()), len(a.AllTransforms()); remembered != 1 || made != 1 {
		t.Errorf("got %d unwritten changes and %d in all, want only the last one", remembered, made)
	}
	pass := newAttempt()
	for range 3 {
		_ = pass.AddTransform(setting("own"))
	}
	pass.MarkWritten(2)
	if remembered, made := len(pass.UnwrittenTransforms()), len(pass.AllTransforms()); remembered != 1 || made != 3 {
		t.Errorf("got %d unwritten changes and %d in all, want 1 and 3, as a pass may need them again",
			remembered, made)
	}
}
