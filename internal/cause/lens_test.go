package cause_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
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
	return &cause.Lens{Diffbase: diffbase.Annotations{}, Progress: progress.Smart{}, ExtraPaths: extra}
}

func TestLensFails(t *testing.T) {
	var malformed *diffbase.MalformedError
	_, err := newLens().ComparableEssence(diffbase.Annotations{}.Fetch(annotated(object{lastHandled: "{"})))
	if !errors.As(err, &malformed) || !strings.HasPrefix(err.Error(), "reading the last-handled configuration: ") {
		t.Errorf("a malformed last-handled configuration must be an error: got %v", err)
	}
	_, err = newLens(diff.Path{}).New(annotated(nil))
	if err == nil || !strings.HasPrefix(err.Error(), "building the essence: ") {
		t.Errorf("the whole object as an extra field must be an error: got %v", err)
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
			reason: "a missing last-handled configuration is nil, not an empty essence", lens: newLens(),
			body: annotated(nil),
			now:  object{"spec": spec},
		},
		"Handled": {
			reason: "both the present and the last-handled configuration are essences", lens: newLens(),
			body: annotated(
				object{lastHandled: `{"spec": {"a": 1}}`},
			),
			now: object{"spec": spec}, old: object{"spec": spec},
		},
		"HandledToNothing": {
			reason: "an object with an empty last-handled configuration was handled", lens: newLens(), body: annotated(
				object{lastHandled: `{}`},
			),
			now: object{"spec": spec}, old: object{},
		},
		"Progress": {
			reason: "progress is removed from the present essence and from the stored one", lens: newLens(),
			body: annotated(object{"kopf.zalando.org/fn": "{}", "own": "x",
				lastHandled: `{"spec": {"a": 1}, ` +
					`"metadata": {"annotations": {"kopf.zalando.org/fn": "{}", "own": "x"}}}`}),
			now: object{"spec": spec, "metadata": object{"annotations": object{"own": "x"}}},
			old: object{"spec": spec, "metadata": object{"annotations": object{"own": "x"}}},
		},
		"LegacyProgress": {
			reason: "progress in the status is removed, even if handlers use the status",
			lens:   newLens(diff.Path{"status"}),
			body: object{"spec": spec, "status": object{"x": "y",
				"kopf": object{"progress": object{"fn": object{}}}}},
			now: object{"spec": spec, "status": object{"x": "y"}},
		},
		"Extra": {
			reason: "of the status, only fields used by handlers are in the essence",
			lens:   newLens(diff.Path{"status", "x"}),
			body: object{
				"spec": spec, "status": object{"x": "y", "z": "w"},
			}, now: object{"spec": spec, "status": object{"x": "y"}},
		},
		"Unreachable": {
			reason: "a field within a scalar, a list or a null is absent and does not affect others",
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
			old, err := tc.lens.ComparableEssence(tc.lens.Diffbase.Fetch(tc.body))
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
	got, err := newLens().ComparableEssence(diffbase.Annotations{Key: "other"}.Fetch(body))
	if d := cmp.Diff(diffbase.Essence{"spec": int64(2)}, got); d != "" || err != nil {
		t.Errorf("Read must use the content of the given storage: error %v, -want, +got:\n%s", err, d)
	}
}

// TestLast shows that Last returns the present essence itself if the stored text equals its encoding, and decodes the
// text otherwise.
func TestLast(t *testing.T) {
	now := object{"spec": object{"a": int64(1)}}
	tests := map[string]struct {
		reason, text string
		want         any
		same         bool
		fails        bool
	}{
		"Same":    {"an equal text is not decoded", `{"spec":{"a":1}}` + "\n", now, true, false},
		"Spelled": {"a text with other spacing is decoded", `{"spec": {"a": 1}}`, now, false, false},
		"Other": {
			"the text of another essence is decoded", `{"spec":{"a":2}}` + "\n", object{"spec": object{"a": int64(2)}},
			false, false,
		},
		"Malformed": {"a malformed text is an error", `{`, nil, false, true},
	}
	for name, tc := range tests {
		lens := newLens()
		body := annotated(object{lastHandled: tc.text})
		got, err := lens.Last(body, now)
		if (err != nil) != tc.fails || !tc.fails && !diff.Equal(tc.want, got) {
			t.Errorf("%s: %s: got %v, %v", name, tc.reason, got, err)
		}
		if same := reflect.ValueOf(got).Pointer() == reflect.ValueOf(now).Pointer(); same != tc.same {
			t.Errorf("%s: %s: returned the present essence itself: %v", name, tc.reason, same)
		}
		if _, err := lens.Last(body, nil); (err != nil) != tc.fails {
			t.Errorf("%s: without a present essence, the text must be decoded: %v", name, err)
		}
	}
}
