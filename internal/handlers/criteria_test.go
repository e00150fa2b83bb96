package handlers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestPatterns(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		pattern handlers.ValuePattern
		// results for the text "x", for another text, for a null, and for a missing value
		want []bool
	}{
		"Present": {"a null counts as present", handlers.IsPresent, []bool{true, true, true, false}},
		"Absent":  {"only a missing value is absent", handlers.IsAbsent, []bool{false, false, false, true}},
		"Equals": {"a pattern of a value matches only this value",
			handlers.EqualTo("x"), []bool{true, false, false, false}},
		"Null": {
			"a pattern of null does not match a missing value", handlers.EqualTo(nil),
			[]bool{false, false, true, false},
		},
	} {
		got := []bool{tc.pattern("x", true), tc.pattern("y", true), tc.pattern(nil, true), tc.pattern(nil, false)}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, d)
		}
	}
}

func TestPrematch(t *testing.T) {
	broken := errors.New("broken")
	fixed := func(ok bool, err error) handlers.Filter {
		return func(context.Context, *cause.Cause) (bool, error) { return ok, err }
	}
	yes, no := fixed(true, nil), fixed(false, nil)
	panicking := func(any, bool) bool { panic("boo") }
	c := &cause.Cause{
		Object: jsontext.NewFromValue(object{"status": object{"a": "b"}}), Old: object{"spec": object{"old": "x"}},
		New: object{"spec": object{"now": "x"}},
	}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		at      int
		want    bool
		fails   string
	}{
		"FailingFilter": {
			"a failing filter is an error that names the handler",
			handlers.Handler{ID: "fn", Filters: []handlers.Filter{yes, fixed(true, broken)}}, 1,
			false,
			`filter of handler "fn": broken`,
		},
		"PanickingPattern": {
			"a panicking pattern is an error that names the handler",
			handlers.Handler{ID: "fn", Field: diff.Path{"spec"}, Value: panicking}, -1, false,
			`value pattern of handler "fn": panic: boo`,
		},
		"Anything": {"a handler without criteria matches any object", handlers.Handler{}, 0, true, ""},
		"Filtered": {
			"one filter that does not match is enough, and its index is returned",
			handlers.Handler{Filters: []handlers.Filter{yes, no}}, 1, false, "",
		},
		"AllFilters": {"a handler matches if all of its filters match",
			handlers.Handler{Filters: []handlers.Filter{yes, yes}}, 0, true, ""},
		"NoField": {
			"a field that does not exist does not match",
			handlers.Handler{Field: diff.Path{"spec", "z"}}, -1, false, "",
		},
		"FieldOfBody": {"a change handler does not look for its field outside of the essences",
			handlers.Handler{Field: diff.Path{"status"}}, -1, false, ""},
		"FieldNow": {"a field that exists only in the new essence matches",
			handlers.Handler{Field: diff.Path{"spec", "now"}}, 0, true, ""},
		"FieldBefore": {"a field that exists only in the old essence matches",
			handlers.Handler{Field: diff.Path{"spec", "old"}}, 0, true, ""},
		"Watching": {
			"an event handler looks for its field in the object", handlers.Handler{
				Family: handlers.Watching, Field: diff.Path{"status"},
			}, 0, true, "",
		},
		"WatchingTheEssence": {
			"an event handler does not look for its field in the essences",
			handlers.Handler{Family: handlers.Watching, Field: diff.Path{"spec"}}, -1, false, "",
		},
		"OtherValue": {
			"a field with another value does not match",
			handlers.Handler{Field: diff.Path{"spec", "now"}, Value: handlers.EqualTo("y")},
			-1, false, "",
		},
		"Value": {
			"a field with an equal value matches",
			handlers.Handler{Field: diff.Path{"spec", "now"}, Value: handlers.EqualTo("x")}, 0, true, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			at, ok, err := tc.handler.MatchesObject(t.Context(), c)
			if at != tc.at || ok != tc.want || (err != nil) != (tc.fails != "") ||
				err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: got %v at %d, error %v; want %v at %d", tc.reason, ok, at, err, tc.want, tc.at)
			}
		})
	}
}

func TestPresentPlace(t *testing.T) {
	c := &cause.Cause{Object: jsontext.NewFromValue(object{"of": "body"}), New: object{"of": "essence"}}
	for family, want := range map[handlers.Family]any{handlers.Changing: "essence", handlers.Watching: "body"} {
		if got := (&handlers.Handler{Family: family}).PresentState(c)["of"]; got != want {
			t.Errorf("family %d looks into the %v, want the %v", family, got, want)
		}
	}
}

func TestHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		want    bool
	}{
		"Daemon": {"a daemon holds a deleted object until it is stopped",
			handlers.Handler{Family: handlers.Background}, true},
		"Deletion": {"a delete handler holds a deleted object until it is called",
			handlers.Handler{Reason: cause.Delete}, true},
		"Optional": {"an optional delete handler does not hold a deleted object",
			handlers.Handler{Reason: cause.Delete, Optional: true}, false},
		"Creation": {"a create handler does not hold a deleted object", handlers.Handler{Reason: cause.Create}, false},
		"Event": {
			"an event handler does not hold a deleted object",
			handlers.Handler{Family: handlers.Watching, Reason: cause.Delete},
			false,
		},
	} {
		if got := tc.handler.NeedsFinalizer(); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

func TestViewIsVeiled(t *testing.T) {
	c := cause.Detect(cause.Observation{
		Body: object{}, Old: object{"spec": object{"a": "1"}}, New: object{"spec": object{"a": "2"}},
		VeiledPaths: []diff.Path{{"spec", "a"}},
	})
	_, _, changes := (&handlers.Handler{Field: diff.Path{"spec"}}).ViewCause(c)
	if d := cmp.Diff(diff.Diff{{Op: diff.Change, Path: diff.Path{"a"}}}, changes); d != "" {
		t.Errorf("want the change without values, -want, +got:\n%s", d)
	}
}

func TestSub(t *testing.T) {
	value := handlers.EqualTo("x")
	for name, tc := range map[string]struct {
		reason        string
		parent, child handlers.Handler
		field         diff.Path
		value         bool
	}{
		"Plain": {"a sub-handler has no field if its parent has no field",
			handlers.Handler{}, handlers.Handler{}, nil, false},
		"Parent": {
			"a sub-handler inherits the field and the pattern of its parent",
			handlers.Handler{Field: diff.Path{"a"}, Value: value},
			handlers.Handler{}, diff.Path{"a"}, true,
		},
		"Child": {
			"a sub-handler keeps its own field and pattern",
			handlers.Handler{}, handlers.Handler{Field: diff.Path{"b"}, Value: value}, diff.Path{"b"},
			true,
		},
		"Both": {
			"the field of a sub-handler is below that of its parent, without the parent's pattern",
			handlers.Handler{Field: diff.Path{"a"}, Value: value}, handlers.Handler{Field: diff.Path{"b"}},
			diff.Path{"a", "b"}, false,
		},
	} {
		got := tc.child.AsSubHandler(&tc.parent)
		if d := cmp.Diff(tc.field, got.Field); d != "" || (got.Value != nil) != tc.value {
			t.Errorf("%s: %s: a pattern: %v; field, -want, +got:\n%s", name, tc.reason, got.Value != nil, d)
		}
	}
}

func TestLifecycles(t *testing.T) {
	type facts struct{ valid, single bool }
	for lifecycle, want := range map[handlers.Lifecycle]facts{
		handlers.InOrder: {true, false}, handlers.ASAP: {true, true}, handlers.OneByOne: {true, true},
		handlers.AllAtOnce: {true, false}, handlers.Randomized: {true, true}, handlers.Shuffled: {true, false},
		handlers.LifecycleFunc(nil): {false, true},
	} {
		if got := (facts{lifecycle.IsValid(), lifecycle.PicksOne()}); got != want {
			t.Errorf("lifecycle %v: got %+v, want %+v", lifecycle, got, want)
		}
	}
}
