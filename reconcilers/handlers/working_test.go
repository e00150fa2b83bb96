package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Whoever asks for the working copy may change it: others have what it was made of.
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
		"Own": {"it is there", &handlers.Invocation{Object: map[string]any{"a": "b"}}, map[string]any{"a": "b"}},
		"OwnFirst": {
			"it was changed since", &handlers.Invocation{Object: map[string]any{}, Given: decoded}, map[string]any{},
		},
		"Text": {
			"it is decoded", &handlers.Invocation{Given: jsontext.New([]byte(`{"spec":{"size":1}}`))},
			map[string]any{"spec": map[string]any{"size": int64(1)}},
		},
		"Decoded": {
			"it is copied", &handlers.Invocation{Given: decoded},
			map[string]any{"spec": map[string]any{"size": int64(1)}},
		},
		"Nothing": {"there is none", &handlers.Invocation{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			first, err := tc.call.Working()
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
			if second, err := tc.call.Working(); err != nil || second["more"] != true {
				t.Errorf("the next one got another copy: %v, %v", second, err)
			}
		})
	}
	value, err := decoded.Value()
	if err != nil || value["more"] != nil || value["spec"].(map[string]any)["size"] != int64(1) {
		t.Errorf("what all have was changed: %v, %v", value, err)
	}
	damaged := &handlers.Invocation{Given: jsontext.New([]byte(`{"a":1e999}`))}
	if object, err := damaged.Working(); object != nil || err == nil {
		t.Errorf("got %v, %v of a text that cannot be decoded", object, err)
	}
}
