package handlers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

func TestPatterns(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		pattern handlers.Pattern
		// of the text "x", of another text, of a null that is there, and of nothing
		want []bool
	}{
		"Present": {"a null is there", handlers.Present, []bool{true, true, true, false}},
		"Absent":  {"nothing else is absent", handlers.Absent, []bool{false, false, false, true}},
		"Equals":  {"the value counts", handlers.Equals("x"), []bool{true, false, false, false}},
		"Null": {
			"an absent value equals nothing, not even a null", handlers.Equals(nil), []bool{false, false, true, false},
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
		Object: jsontext.Of(object{"status": object{"a": "b"}}), Old: object{"spec": object{"old": "x"}},
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
			"the object waits", handlers.Handler{ID: "fn", Filters: []handlers.Filter{yes, fixed(true, broken)}}, 1,
			false,
			`filter of handler "fn": broken`,
		},
		"PanickingPattern": {
			"so it does for a panic", handlers.Handler{ID: "fn", Field: diff.Path{"spec"}, Value: panicking}, -1, false,
			`value pattern of handler "fn": panic: boo`,
		},
		"Anything": {"it asks for nothing", handlers.Handler{}, 0, true, ""},
		"Filtered": {
			"one no is enough, and it is told which",
			handlers.Handler{Filters: []handlers.Filter{yes, no}}, 1, false, "",
		},
		"AllFilters": {"none says no", handlers.Handler{Filters: []handlers.Filter{yes, yes}}, 0, true, ""},
		"NoField": {
			"there is nothing at its place", handlers.Handler{Field: diff.Path{"spec", "z"}}, -1, false, "",
		},
		"FieldOfBody": {"changes are of essences", handlers.Handler{Field: diff.Path{"status"}}, -1, false, ""},
		"FieldNow":    {"it has come", handlers.Handler{Field: diff.Path{"spec", "now"}}, 0, true, ""},
		"FieldBefore": {"it has gone", handlers.Handler{Field: diff.Path{"spec", "old"}}, 0, true, ""},
		"Watching": {
			"whoever knows no changes looks at the object", handlers.Handler{
				Family: handlers.Watching, Field: diff.Path{"status"},
			}, 0, true, "",
		},
		"WatchingTheEssence": {
			"and nowhere else", handlers.Handler{Family: handlers.Watching, Field: diff.Path{"spec"}}, -1, false, "",
		},
		"OtherValue": {
			"the value counts", handlers.Handler{Field: diff.Path{"spec", "now"}, Value: handlers.Equals("y")},
			-1, false, "",
		},
		"Value": {
			"it is equal", handlers.Handler{Field: diff.Path{"spec", "now"}, Value: handlers.Equals("x")}, 0, true, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			at, ok, err := tc.handler.Prematch(t.Context(), c)
			if at != tc.at || ok != tc.want || (err != nil) != (tc.fails != "") ||
				err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: got %v at %d, error %v; want %v at %d", tc.reason, ok, at, err, tc.want, tc.at)
			}
		})
	}
}

func TestPresentPlace(t *testing.T) {
	c := &cause.Cause{Object: jsontext.Of(object{"of": "body"}), New: object{"of": "essence"}}
	for family, want := range map[handlers.Family]any{handlers.Changing: "essence", handlers.Watching: "body"} {
		if got := (&handlers.Handler{Family: family}).Present(c)["of"]; got != want {
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
		"Daemon":   {"it is to be stopped first", handlers.Handler{Family: handlers.Spawning}, true},
		"Deletion": {"it is to be called first", handlers.Handler{Reason: cause.Delete}, true},
		"Optional": {"it may miss it", handlers.Handler{Reason: cause.Delete, Optional: true}, false},
		"Creation": {"it has no part in deletions", handlers.Handler{Reason: cause.Create}, false},
		"Event": {
			"it sees deletions, and holds none", handlers.Handler{Family: handlers.Watching, Reason: cause.Delete},
			false,
		},
	} {
		if got := tc.handler.Holds(); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

func TestViewIsVeiled(t *testing.T) {
	c := cause.Detect(cause.Observation{
		Body: object{}, Old: object{"spec": object{"a": "1"}}, New: object{"spec": object{"a": "2"}},
		Veiled: []diff.Path{{"spec", "a"}},
	})
	_, _, changes := (&handlers.Handler{Field: diff.Path{"spec"}}).View(c)
	if d := cmp.Diff(diff.Diff{{Op: diff.Change, Path: diff.Path{"a"}}}, changes); d != "" {
		t.Errorf("that it changed is told, and no value, -want, +got:\n%s", d)
	}
}

func TestSub(t *testing.T) {
	value := handlers.Equals("x")
	for name, tc := range map[string]struct {
		reason        string
		parent, child handlers.Handler
		field         diff.Path
		value         bool
	}{
		"Plain": {"neither has a field", handlers.Handler{}, handlers.Handler{}, nil, false},
		"Parent": {
			"it is in the field of its parent", handlers.Handler{Field: diff.Path{"a"}, Value: value},
			handlers.Handler{}, diff.Path{"a"}, true,
		},
		"Child": {
			"it has its own", handlers.Handler{}, handlers.Handler{Field: diff.Path{"b"}, Value: value}, diff.Path{"b"},
			true,
		},
		"Both": {
			"its field is inside the parent's, whose pattern is for that",
			handlers.Handler{Field: diff.Path{"a"}, Value: value}, handlers.Handler{Field: diff.Path{"b"}},
			diff.Path{"a", "b"}, false,
		},
	} {
		got := tc.child.Sub(&tc.parent)
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
		if got := (facts{lifecycle.Valid(), lifecycle.Single()}); got != want {
			t.Errorf("lifecycle %v: got %+v, want %+v", lifecycle, got, want)
		}
	}
}
