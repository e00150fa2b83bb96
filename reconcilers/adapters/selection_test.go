package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var errFilter = errors.New("the database of owners is down")

func verdictAdapter(ok bool) handlers.Filter {
	return func(context.Context, *cause.Cause) (bool, error) { return ok, nil }
}

func failing(context.Context, *cause.Cause) (bool, error) { return true, errFilter }

func panicking(context.Context, *cause.Cause) (bool, error) { panic("nil map") }

func boom(any, bool) bool { panic("boom") }

func failingWith(err error) handlers.Filter {
	return func(context.Context, *cause.Cause) (bool, error) { return false, err }
}

// updatedAdapter returns an update of spec.a from 0 to 1.
func updatedAdapter() *cause.Cause {
	return withReason(&cause.Cause{
		Object: jsontext.NewFromValue(object{"spec": object{"a": int64(1), "b": int64(2)}}),
		Old:    object{"spec": object{"a": int64(0), "b": int64(2)}},
		New:    object{"spec": object{"a": int64(1), "b": int64(2)}},
	}, cause.Update)
}

func with(c *cause.Cause, change func(c *cause.Cause)) *cause.Cause { change(c); return c }

func TestFiltersThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		filter handlers.Filter
		is     error
		says   string
	}{
		"Error": {
			reason: "a filter that returns an error is an error", filter: failing, is: errFilter,
			says: `filter of handler "fn": `,
		},
		"EvilError": {
			reason: "a filter error whose methods panic is an error", filter: failingWith((*nilError)(nil)),
			says: `filter of handler "fn": a nil *adapters_test.nilError`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := newChains(&handlers.Handler{ID: "other", Filters: []handlers.Filter{verdictAdapter(false)}},
				&handlers.Handler{ID: "fn", Filters: []handlers.Filter{tc.filter}})
			interest, one := adapters.InterestIn(t.Context(), all, updatedAdapter(), nil)
			selected, other := adapters.Select(t.Context(), all, updatedAdapter(), nil)
			for _, err := range []error{one, other} {
				if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.says)
				}
			}
			if (interest != adapters.ObjectInterest{}) || selected != nil {
				t.Errorf("%s: an error must not come with a decision: %v, %v", tc.reason, interest, selected)
			}
		})
	}
}

func TestFiltersThatPanic(t *testing.T) {
	field := diff.Path{"spec", "a"}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		says    []string
		stack   string // expected in the stack of the panic
	}{
		"Filter": {
			reason:  "a filter that panics fails its handler, with the place",
			handler: handlers.Handler{Filters: []handlers.Filter{panicking}},
			says:    []string{`filter of handler "fn": panic: nil map`}, stack: "selection_test.go",
		},
		"NilFilter": {
			reason:  "a filter that is nil fails its handler",
			handler: handlers.Handler{Filters: []handlers.Filter{nil}},
			says:    []string{`filter of handler "fn": panic: `, "nil pointer"}, stack: "panics.go",
		},
		"Value": {
			reason:  "a value pattern that panics fails its handler",
			handler: handlers.Handler{Field: field, Value: boom},
			says:    []string{`value pattern of handler "fn": panic: boom`}, stack: "selection_test.go",
		},
		"From": {
			reason:  "a pattern of the old value that panics fails its handler",
			handler: handlers.Handler{Field: field, From: boom},
			says:    []string{`value pattern of handler "fn": panic: boom`}, stack: "selection_test.go",
		},
		"Delete": {
			reason:  "a deletion handler whose filter panics holds the object",
			handler: handlers.Handler{Reason: cause.Delete, Filters: []handlers.Filter{panicking}},
			says:    []string{`filter of handler "fn": panic: nil map`}, stack: "selection_test.go",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.handler.ID = "fn"
			tc.handler.Call = func(context.Context, *handlers.Invocation) error { t.Error("it was called"); return nil }
			c := updatedAdapter()
			if tc.handler.Reason == cause.Delete {
				c = withReason(c, cause.Delete)
			}
			all := newChains(&tc.handler, &handlers.Handler{ID: "other",
				Filters: []handlers.Filter{verdictAdapter(true)}})
			interest, err := adapters.InterestIn(t.Context(), all, c, nil)
			want := adapters.ObjectInterest{HasChangeHandler: true, NeedsFinalizer: tc.handler.Reason == cause.Delete}
			if err != nil || interest != want {
				t.Errorf("%s: got interest %v with error %v, want %v", tc.reason, interest, err, want)
			}
			selected, err := adapters.Select(t.Context(), all, c, nil)
			if err != nil || len(selected) != 2 || selected[1].Description.ID != "other" {
				t.Fatalf("%s: other handlers must not be affected: got %v with error %v", tc.reason, selected, err)
			}
			a := execution.NewAttempt(selected[0].Description, c, object{})
			selected[0].RunAttempt(t.Context(), a)
			checkPanic(t, tc.reason, a.Outcome, tc.says, tc.stack)
		})
	}
}

func checkPanic(t *testing.T, reason string, outcome execution.Outcome, says []string, stack string) {
	t.Helper()
	if outcome.Err == nil || outcome.Final {
		t.Fatalf("%s: the handler must fail and be retried: %+v", reason, outcome)
	}
	if found := fmt.Sprint(panics.StackFields(outcome.Err)); !strings.Contains(found, stack) {
		t.Errorf("%s: the stack must name the place: %s", reason, found)
	}
	for _, text := range says {
		if !strings.Contains(outcome.Err.Error(), text) {
			t.Errorf("%s: the error must contain %q: %v", reason, text, outcome.Err)
		}
	}
}

func TestSelect(t *testing.T) {
	field := diff.Path{"spec", "a"}
	initial := func(c *cause.Cause) { c.Initial = true }
	deleting := func(c *cause.Cause) { withReason(c, cause.Delete).Initial = true }
	tests := map[string]struct {
		reason string
		all    []*handlers.Handler
		cause  *cause.Cause
		want   []any
	}{
		"OtherReason": {
			reason: "a handler of one reason is not selected for another one",
			all:    []*handlers.Handler{{ID: "a", Reason: cause.Create}},
		},
		"Informational": {
			reason: "handlers of any reason are selected for causes that call no handlers, as in Kopf; " +
				"the caller must not call them", want: []any{"a", "b"},
			all:   []*handlers.Handler{{ID: "a"}, {ID: "b", Initial: true}, {ID: "c", Reason: cause.Update}},
			cause: with(updatedAdapter(), func(c *cause.Cause) { withReason(c, cause.Gone).Initial = true }),
		},
		"NotInitial": {
			reason: "a resume handler is selected only for objects listed at the start",
			all:    []*handlers.Handler{{ID: "a", Initial: true}},
		},
		"NotEvenIfDeleted": {
			reason: "a deleted object does not resume handlers, unless they ask for it",
			cause:  with(updatedAdapter(), deleting),
			all: []*handlers.Handler{
				{ID: "a", Initial: true}, {ID: "b", Initial: true, EvenIfDeleted: true},
				{ID: "c", Reason: cause.Delete},
			},
			want: []any{"b", "c"},
		},
		"ResumeMixedIn": {
			reason: "a change does not hide that the object is listed at the start", cause: with(
				updatedAdapter(), initial,
			),
			all: []*handlers.Handler{
				{ID: "a", Reason: cause.Update}, {ID: "b", Initial: true}, {ID: "c"},
			}, want: []any{"a", "b", "c"},
		},
		"Unchanged": {
			reason: "a field handler is selected only for a change of its field",
			all: []*handlers.Handler{
				{ID: "a", Field: diff.Path{"spec", "b"}, NeedsChange: true}, {ID: "b", Field: field, NeedsChange: true},
			},
			want: []any{"b"},
		},
		"ChangeNotNeeded": {
			reason: "other handlers with a field need only its presence", want: []any{"a"},
			all: []*handlers.Handler{
				{ID: "a", Field: diff.Path{"spec", "b"}}, {ID: "b", Field: diff.Path{"spec", "c"}},
			},
		},
		"FilteredOut": {
			reason: "all filters must match; after a mismatch, no further filter is called",
			all: []*handlers.Handler{
				{ID: "a", Filters: []handlers.Filter{verdictAdapter(true), verdictAdapter(false), failing}},
				{ID: "b", Filters: []handlers.Filter{verdictAdapter(true)}},
			},
			want: []any{"b"},
		},
		"NotAskedForOtherReasons": {
			reason: "filters are called last, because they can be expensive", want: []any{"b"},
			all: []*handlers.Handler{{ID: "a", Reason: cause.Create, Filters: []handlers.Filter{failing}}, {ID: "b"}},
		},
		"SameFunctionSameID": {
			reason: "one function and id with several reasons is selected once, in the first position",
			all: []*handlers.Handler{
				{ID: "a", FunctionKey: 1}, {ID: "b", FunctionKey: 2}, {ID: "a", FunctionKey: 1, Reason: cause.Update},
			}, want: []any{"a", "b"},
		},
		"FirstFilteredOut": {
			reason: "a registration that does not match does not set the position", want: []any{"b", "a"},
			all: []*handlers.Handler{
				{ID: "a", FunctionKey: 1, Filters: []handlers.Filter{verdictAdapter(false)}}, {ID: "b", FunctionKey: 2},
				{ID: "a", FunctionKey: 1},
			},
		},
		"SameIDOtherFunction": {
			reason: "two functions with one id are two handlers", want: []any{"a", "a"},
			all: []*handlers.Handler{{ID: "a", FunctionKey: 1}, {ID: "a", FunctionKey: 2}},
		},
		"SameFunctionOtherID": {
			reason: "one function with two ids is two handlers", want: []any{"b", "a"},
			all: []*handlers.Handler{{ID: "b", FunctionKey: 1}, {ID: "a", FunctionKey: 1}},
		},
		"Order": {
			reason: "handlers are selected in the order of registration, whatever their ids and reasons", want: []any{
				"z", "m", "a",
			},
			all: []*handlers.Handler{{ID: "z"}, {ID: "m", Reason: cause.Update}, {ID: "a"}},
		},
		"Nobody": {reason: "without handlers, none is selected"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.cause == nil {
				tc.cause = updatedAdapter()
			}
			selected, err := adapters.Select(t.Context(), newChains(tc.all...), tc.cause, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == nil {
				tc.want = []any{}
			}
			if d := cmp.Diff(tc.want, ids(selected)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
