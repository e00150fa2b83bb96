package kopf_test

import (
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

func TestPatternsOfValues(t *testing.T) {
	cases := map[string]struct {
		reason   string
		pattern  any
		old, now map[string]any
		want     bool
	}{
		"another value": {"it is not equal", 3, nil, map[string]any{"size": int64(2)}, false},
		"equal":         {"Go's numbers are JSON's", 2, nil, map[string]any{"size": int64(2)}, true},
		"absent":        {"there was none", kopf.Absent, map[string]any{}, map[string]any{"size": int64(2)}, false},
		"gone":          {"there is none now", kopf.Absent, map[string]any{"size": int64(2)}, map[string]any{}, true},
		"present":       {"there is one", kopf.Present, nil, map[string]any{"size": int64(2)}, true},
		"function": {"D-value-functions: it gets the value, with JSON's types, and whether it is present",
			func(value any, present bool) bool { return present && value.(int64) > 1 }, nil,
			map[string]any{"size": int64(2)}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).OnField("fn", "spec.size", succeed, kopf.NewValue(tc.pattern))
			plan, err := kopf.Plan(op, newScheme(t))
			if err != nil {
				t.Fatal(err)
			}
			o := cause.Observation{New: map[string]any{"spec": tc.now}}
			if tc.old != nil {
				o.Old = map[string]any{"spec": tc.old}
			}
			selected, err := adapters.Select(t.Context(), reconcilersOf(plan[0].Handler), cause.Detect(o), nil)
			if err != nil || len(selected) == 1 != tc.want {
				t.Errorf("%s: got %d handlers, error %v", tc.reason, len(selected), err)
			}
		})
	}
}

func TestCombinators(t *testing.T) {
	asked := 0
	is := func(answer bool) func(int, string) bool {
		return func(int, string) bool { asked++; return answer }
	}
	yes, no := is(true), is(false)
	cases := map[string]struct {
		reason    string
		predicate func(int, string) bool
		want      bool
		asked     int
	}{
		"not":         {"the contrary", kopf.Not(no), true, 1},
		"all":         {"no more is asked than needed", kopf.All(yes, no, yes), false, 2},
		"all of none": {"nothing is false", kopf.All[int, string](), true, 0},
		"any":         {"no more is asked than needed", kopf.Any(no, yes, no), true, 2},
		"any of none": {"nothing is true", kopf.Any[int, string](), false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked = 0
			if got := tc.predicate(1, "x"); got != tc.want || asked != tc.asked {
				t.Errorf("%s: got %v after %d questions, want %v after %d", tc.reason, got, asked, tc.want, tc.asked)
			}
		})
	}
}
