package execution_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// live is the object of a function in the background, which may be gone.
type live struct {
	handlers.Live

	body object
}

func (l *live) Object() *jsontext.Object { return jsontext.Of(l.body) }

// A function in the background changes the object as it is by then; and nothing of what it has written is kept, as it
// may run for ever.
func TestAttemptInTheBackground(t *testing.T) {
	newest := &live{body: object{"others": int64(1)}}
	a := newAttempt()
	a.Call.Cause, a.Call.Live = &cause.Cause{Object: jsontext.Of(object{"begun": true})}, newest
	for _, step := range []struct {
		reason string
		body   object
		want   object
	}{
		{"others have changed it", object{"others": int64(1)}, object{"others": int64(1), "own": true}},
		{"others have changed it again", object{"others": int64(2)}, object{"others": int64(2), "own": true}},
		{"it is gone, so it is as it was at first", nil, object{"begun": true, "own": true}},
	} {
		newest.body = step.body
		if err := a.Remember(setting("own")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.want, a.Call.Object); d != "" {
			t.Errorf("%s: -want, +got:\n%s", step.reason, d)
		}
	}
	a.Written(2)
	if remembered, made := len(a.Remembered()), len(a.Made()); remembered != 1 || made != 1 {
		t.Errorf("got %d changes to be written, and %d in all, want the last one", remembered, made)
	}
	pass := newAttempt()
	for range 3 {
		_ = pass.Remember(setting("own"))
	}
	pass.Written(2)
	if remembered, made := len(pass.Remembered()), len(pass.Made()); remembered != 1 || made != 3 {
		t.Errorf("got %d changes to be written, and %d in all; those of a pass may be needed anew", remembered, made)
	}
}
