package cause_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

type object = map[string]any

const lastHandled = "kopf.zalando.org/last-handled-configuration"

func annotated(annotations object) object {
	return object{"metadata": object{"annotations": annotations}, "spec": object{"a": int64(1)}}
}

func newLens(extra ...diff.Path) *cause.Lens {
	return &cause.Lens{Diffbase: diffbase.Annotations{}, Progress: progress.Smart{}, Extra: extra}
}

func TestLensFails(t *testing.T) {
	var malformed *diffbase.MalformedError
	_, err := newLens().Read(diffbase.Annotations{}.Fetch(annotated(object{lastHandled: "{"})))
	if !errors.As(err, &malformed) || !strings.HasPrefix(err.Error(), "reading the last-handled configuration: ") {
		t.Errorf("a malformed memory is not taken for none: got %v", err)
	}
	_, err = newLens(diff.Path{}).New(annotated(nil))
	if err == nil || !strings.HasPrefix(err.Error(), "building the essence: ") {
		t.Errorf("the object as a whole cannot be tracked: got %v", err)
	}
}

func TestLens(t *testing.T) {
	spec := object{"a": int64(1)}
	tests := map[string]struct {
		reason   string
		lens     *cause.Lens
		body     object
		now, old diffbase.Essence
	}{
		"NeverHandled": {
			reason: "no memory is no essence, not an empty one", lens: newLens(), body: annotated(nil),
			now: object{"spec": spec},
		},
		"Handled": {
			reason: "both sides are essences", lens: newLens(), body: annotated(
				object{lastHandled: `{"spec": {"a": 1}}`},
			),
			now: object{"spec": spec}, old: object{"spec": spec},
		},
		"HandledToNothing": {
			reason: "an object with nothing in it was handled nevertheless", lens: newLens(), body: annotated(
				object{lastHandled: `{}`},
			),
			now: object{"spec": spec}, old: object{},
		},
		"Progress": {
			reason: "progress is no change, in whatever version of an essence it stands", lens: newLens(),
			body: annotated(object{"kopf.zalando.org/fn": "{}", "own": "x",
				lastHandled: `{"spec": {"a": 1}, ` +
					`"metadata": {"annotations": {"kopf.zalando.org/fn": "{}", "own": "x"}}}`}),
			now: object{"spec": spec, "metadata": object{"annotations": object{"own": "x"}}},
			old: object{"spec": spec, "metadata": object{"annotations": object{"own": "x"}}},
		},
		"LegacyProgress": {
			reason: "so is what stood in the status, even if handlers look at that", lens: newLens(diff.Path{"status"}),
			body: object{"spec": spec, "status": object{"x": "y", "kopf": object{"progress": object{"fn": object{}}}}},
			now:  object{"spec": spec, "status": object{"x": "y"}},
		},
		"Extra": {
			reason: "of the status, only what handlers look at is essential", lens: newLens(diff.Path{"status", "x"}),
			body: object{
				"spec": spec, "status": object{"x": "y", "z": "w"},
			}, now: object{"spec": spec, "status": object{"x": "y"}},
		},
		"Unreachable": {
			reason: "a field inside of a scalar, a list or a null is not there, and takes no others along",
			lens: newLens(
				diff.Path{"status", "x"}, diff.Path{"status", "x", "y"}, diff.Path{"spec", "a", "b"},
				diff.Path{"status", "l", "0"}, diff.Path{"status", "n", "m"},
			),
			body: object{
				"spec": spec, "status": object{"x": "y", "l": []any{int64(1)}, "n": nil},
			}, now: object{"spec": spec, "status": object{"x": "y"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now, err := tc.lens.New(tc.body)
			if err != nil {
				t.Fatal(err)
			}
			old, err := tc.lens.Read(tc.lens.Diffbase.Fetch(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]diffbase.Essence{tc.now, tc.old}, []diffbase.Essence{now, old}); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestLensReadsOtherPlaces(t *testing.T) {
	body := annotated(object{lastHandled: `{"spec": 1}`, "kopf.zalando.org/other": `{"spec": 2}`})
	got, err := newLens().Read(diffbase.Annotations{Key: "other"}.Fetch(body))
	if d := cmp.Diff(diffbase.Essence{"spec": int64(2)}, got); d != "" || err != nil {
		t.Errorf("the place is that of the given storage: error %v, -want, +got:\n%s", err, d)
	}
}

// What was handled last is the present essence if it would be written so, and is read otherwise.
func TestLast(t *testing.T) {
	now := object{"spec": object{"a": int64(1)}}
	tests := map[string]struct {
		reason, text string
		want         any
		same         bool
		fails        bool
	}{
		"Same":    {"it is not read", `{"spec":{"a":1}}` + "\n", now, true, false},
		"Spelled": {"others write it otherwise", `{"spec": {"a": 1}}`, now, false, false},
		"Other": {
			"the object has changed", `{"spec":{"a":2}}` + "\n", object{"spec": object{"a": int64(2)}}, false, false,
		},
		"Malformed": {"nobody can read it", `{`, nil, false, true},
	}
	for name, tc := range tests {
		lens := newLens()
		body := annotated(object{lastHandled: tc.text})
		got, err := lens.Last(body, now)
		if (err != nil) != tc.fails || !tc.fails && !diff.Equal(tc.want, got) {
			t.Errorf("%s: %s: got %v, %v", name, tc.reason, got, err)
		}
		if same := reflect.ValueOf(got).Pointer() == reflect.ValueOf(now).Pointer(); same != tc.same {
			t.Errorf("%s: %s: the present one itself: %v", name, tc.reason, same)
		}
		if _, err := lens.Last(body, nil); (err != nil) != tc.fails {
			t.Errorf("%s: without a present one it is read: %v", name, err)
		}
	}
}
