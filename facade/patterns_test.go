package kopf_test

import (
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// TestPatternsOfValues shows which values a pattern matches.
func TestPatternsOfValues(t *testing.T) {
	cases := map[string]struct {
		reason   string
		pattern  any
		old, now map[string]any
		want     bool
	}{
		"another value": {"a different value does not match", 3, nil, map[string]any{"size": int64(2)}, false},
		"equal": {"a Go number matches the equal number of JSON", 2, nil, map[string]any{"size": int64(2)},
			true},
		"absent": {"Absent does not match a present value", kopf.Absent, map[string]any{},
			map[string]any{"size": int64(2)}, false},
		"gone": {"Absent matches a removed value", kopf.Absent, map[string]any{"size": int64(2)}, map[string]any{},
			true},
		"present": {"Present matches a present value", kopf.Present, nil, map[string]any{"size": int64(2)},
			true},
		"function": {"a function gets the value with JSON's types, and its presence (D-value-functions)",
			func(value any, present bool) bool { return present && value.(int64) > 1 }, nil,
			map[string]any{"size": int64(2)}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).OnField("fn", "spec.size", succeed, kopf.NewValue(tc.pattern))
			plan := planOf(t, op)
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

// TestCombinators shows that combined predicates call no more functions than needed.
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
		wantCalls int
	}{
		"not":         {"Not returns the negated result", kopf.Not(no), true, 1},
		"all":         {"All stops at the first false predicate", kopf.All(yes, no, yes), false, 2},
		"all of none": {"All without predicates is true", kopf.All[int, string](), true, 0},
		"any":         {"Any stops at the first true predicate", kopf.Any(no, yes, no), true, 2},
		"any of none": {"Any without predicates is false", kopf.Any[int, string](), false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked = 0
			if got := tc.predicate(1, "x"); got != tc.want || asked != tc.wantCalls {
				t.Errorf("%s: got %v after %d calls, want %v after %d", tc.reason, got, asked, tc.want, tc.wantCalls)
			}
		})
	}
}
