package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// TestWorkingCopies shows that a handler can change its working copy without an effect on the shared object.
func TestWorkingCopies(t *testing.T) {
	decoded := jsontext.New([]byte(`{"spec":{"size":1}}`))
	if _, err := decoded.Value(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason string
		call   *handlers.Invocation
		want   map[string]any
	}{
		"Own": {"an existing working copy is returned",
			&handlers.Invocation{Object: map[string]any{"a": "b"}}, map[string]any{"a": "b"}},
		"OwnFirst": {
			"an existing working copy is preferred to the shared object",
			&handlers.Invocation{Object: map[string]any{}, EncodedObject: decoded}, map[string]any{},
		},
		"Text": {
			"a text that was not decoded yet is decoded",
			&handlers.Invocation{EncodedObject: jsontext.New([]byte(`{"spec":{"size":1}}`))},
			map[string]any{"spec": map[string]any{"size": int64(1)}},
		},
		"Decoded": {
			"a decoded object is copied", &handlers.Invocation{EncodedObject: decoded},
			map[string]any{"spec": map[string]any{"size": int64(1)}},
		},
		"Nothing": {"a call without an object has no working copy", &handlers.Invocation{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			first, err := tc.call.WorkingCopy()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, first); d != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, d)
			}
			if first == nil {
				return
			}
			if spec, has := first["spec"].(map[string]any); has {
				spec["size"] = "changed"
			}
			first["more"] = true
			if second, err := tc.call.WorkingCopy(); err != nil || second["more"] != true {
				t.Errorf("the second call returned another copy: %v, %v", second, err)
			}
		})
	}
	value, err := decoded.Value()
	if err != nil || value["more"] != nil || value["spec"].(map[string]any)["size"] != int64(1) {
		t.Errorf("the shared object was changed: %v, %v", value, err)
	}
	damaged := &handlers.Invocation{EncodedObject: jsontext.New([]byte(`{"a":1e999}`))}
	if object, err := damaged.WorkingCopy(); object != nil || err == nil {
		t.Errorf("want an error for a text that cannot be decoded, got %v, %v", object, err)
	}
}
