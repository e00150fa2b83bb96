package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

var errFilter = errors.New("the database of owners is down")

func verdict(ok bool) handlers.Filter {
	return func(context.Context, *cause.Cause) (bool, error) { return ok, nil }
}

func failing(context.Context, *cause.Cause) (bool, error) { return true, errFilter }

func panicking(context.Context, *cause.Cause) (bool, error) { panic("nil map") }

func boom(any, bool) bool { panic("boom") }

func failingWith(err error) handlers.Filter {
	return func(context.Context, *cause.Cause) (bool, error) { return false, err }
}

// updated is an update of spec.a from 0 to 1.
func updated() *cause.Cause {
	return stating(&cause.Cause{
		Object: jsontext.Of(object{"spec": object{"a": int64(1), "b": int64(2)}}),
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
			reason: "the object waits until the filter can be asked", filter: failing, is: errFilter,
			says: `filter of handler "fn": `,
		},
		"EvilError": {
			reason: "an error whose methods panic is an error", filter: failingWith((*nilError)(nil)),
			says: `filter of handler "fn": a nil *adapters_test.nilError`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := made(&handlers.Handler{ID: "other", Filters: []handlers.Filter{verdict(false)}},
				&handlers.Handler{ID: "fn", Filters: []handlers.Filter{tc.filter}})
			interest, one := adapters.InterestIn(t.Context(), all, updated(), nil)
			selected, other := adapters.Select(t.Context(), all, updated(), nil)
			for _, err := range []error{one, other} {
				if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.says)
				}
			}
			if (interest != adapters.Interest{}) || selected != nil {
				t.Errorf("%s: nothing is decided: %v, %v", tc.reason, interest, selected)
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
		stack   string // what must be in that of the panic
	}{
		"Filter": {
			reason:  "the place is named, as it is the user's code",
			handler: handlers.Handler{Filters: []handlers.Filter{panicking}},
			says:    []string{`filter of handler "fn": panic: nil map`}, stack: "selection_test.go",
		},
		"NilFilter": {
			reason: "a filter that is nil panics", handler: handlers.Handler{Filters: []handlers.Filter{nil}},
			says: []string{`filter of handler "fn": panic: `, "nil pointer"}, stack: "panics.go",
		},
		"Value": {
			reason: "a pattern is the user's code, too", handler: handlers.Handler{Field: field, Value: boom},
			says: []string{`value pattern of handler "fn": panic: boom`}, stack: "selection_test.go",
		},
		"From": {
			reason:  "a pattern of the old value is the user's code, too",
			handler: handlers.Handler{Field: field, From: boom},
			says:    []string{`value pattern of handler "fn": panic: boom`}, stack: "selection_test.go",
		},
		"Delete": {
			reason:  "the object is held for it, as it will fail",
			handler: handlers.Handler{Reason: cause.Delete, Filters: []handlers.Filter{panicking}},
			says:    []string{`filter of handler "fn": panic: nil map`}, stack: "selection_test.go",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.handler.ID = "fn"
			tc.handler.Call = func(context.Context, *handlers.Invocation) error { t.Error("it is called"); return nil }
			c := updated()
			if tc.handler.Reason == cause.Delete {
				c = stating(c, cause.Delete)
			}
			all := made(&tc.handler, &handlers.Handler{ID: "other", Filters: []handlers.Filter{verdict(true)}})
			interest, err := adapters.InterestIn(t.Context(), all, c, nil)
			want := adapters.Interest{Changing: true, Finalizer: tc.handler.Reason == cause.Delete}
			if err != nil || interest != want {
				t.Errorf("%s: got interest %v with error %v, want %v", tc.reason, interest, err, want)
			}
			selected, err := adapters.Select(t.Context(), all, c, nil)
			if err != nil || len(selected) != 2 || selected[1].Description.ID != "other" {
				t.Fatalf("%s: no other handler is affected: got %v with error %v", tc.reason, selected, err)
			}
			a := execution.New(selected[0].Description, c, object{})
			selected[0].Run(t.Context(), a)
			checkPanic(t, tc.reason, a.Outcome, tc.says, tc.stack)
		})
	}
}

func checkPanic(t *testing.T, reason string, outcome execution.Outcome, says []string, stack string) {
	t.Helper()
	if outcome.Err == nil || outcome.Final {
		t.Fatalf("%s: the handler fails, and is retried: %+v", reason, outcome)
	}
	if found := fmt.Sprint(panics.Stack(outcome.Err)); !strings.Contains(found, stack) {
		t.Errorf("%s: the stack does not name the place: %s", reason, found)
	}
	for _, text := range says {
		if !strings.Contains(outcome.Err.Error(), text) {
			t.Errorf("%s: the error does not say %q: %v", reason, text, outcome.Err)
		}
	}
}

func TestSelect(t *testing.T) {
	field := diff.Path{"spec", "a"}
	initial := func(c *cause.Cause) { c.Initial = true }
	deleting := func(c *cause.Cause) { stating(c, cause.Delete).Initial = true }
	tests := map[string]struct {
		reason string
		all    []*handlers.Handler
		cause  *cause.Cause
		want   []any
	}{
		"OtherFamilies": {
			reason: "only changing handlers have causes",
			all: []*handlers.Handler{{ID: "a", Family: handlers.Watching}, {ID: "b", Family: handlers.Spawning},
				{ID: "c", Family: handlers.Indexing}, {ID: "d", Family: handlers.Admitting}},
		},
		"OtherReason": {
			reason: "a handler of one reason is for no other",
			all:    []*handlers.Handler{{ID: "a", Reason: cause.Create}},
		},
		"Informational": {
			reason: "who is for any reason fits those that only inform, as in Kopf; that nothing is called then is " +
				"the caller's rule", want: []any{"a", "b"},
			all:   []*handlers.Handler{{ID: "a"}, {ID: "b", Initial: true}, {ID: "c", Reason: cause.Update}},
			cause: with(updated(), func(c *cause.Cause) { stating(c, cause.Gone).Initial = true }),
		},
		"NotInitial": {
			reason: "resuming is for objects that were there before",
			all:    []*handlers.Handler{{ID: "a", Initial: true}},
		},
		"NotEvenIfDeleted": {
			reason: "what is being deleted is not resumed, unless asked for", cause: with(updated(), deleting),
			all: []*handlers.Handler{
				{ID: "a", Initial: true}, {ID: "b", Initial: true, EvenIfDeleted: true},
				{ID: "c", Reason: cause.Delete},
			},
			want: []any{"b", "c"},
		},
		"ResumeMixedIn": {
			reason: "a change made while the operator was down does not hide the resumption", cause: with(
				updated(), initial,
			),
			all: []*handlers.Handler{
				{ID: "a", Reason: cause.Update}, {ID: "b", Initial: true}, {ID: "c"},
			}, want: []any{"a", "b", "c"},
		},
		"Unchanged": {
			reason: "a handler of a field wants a change of that field",
			all: []*handlers.Handler{
				{ID: "a", Field: diff.Path{"spec", "b"}, NeedsChange: true}, {ID: "b", Field: field, NeedsChange: true},
			},
			want: []any{"b"},
		},
		"ChangeNotNeeded": {
			reason: "others with a field want it to be there", want: []any{"a"},
			all: []*handlers.Handler{
				{ID: "a", Field: diff.Path{"spec", "b"}}, {ID: "b", Field: diff.Path{"spec", "c"}},
			},
		},
		"FilteredOut": {
			reason: "all filters must agree, and one that says no ends the matter before those after it fail",
			all: []*handlers.Handler{
				{ID: "a", Filters: []handlers.Filter{verdict(true), verdict(false), failing}},
				{ID: "b", Filters: []handlers.Filter{verdict(true)}},
			},
			want: []any{"b"},
		},
		"NotAskedForOtherReasons": {
			reason: "filters may be expensive: they are asked last", want: []any{"b"},
			all: []*handlers.Handler{{ID: "a", Reason: cause.Create, Filters: []handlers.Filter{failing}}, {ID: "b"}},
		},
		"SameFunctionSameID": {
			reason: "one function registered for several reasons is called once, at its first place",
			all: []*handlers.Handler{
				{ID: "a", Function: 1}, {ID: "b", Function: 2}, {ID: "a", Function: 1, Reason: cause.Update},
			}, want: []any{"a", "b"},
		},
		"FirstFilteredOut": {
			reason: "a place that does not fit is none", want: []any{"b", "a"},
			all: []*handlers.Handler{
				{ID: "a", Function: 1, Filters: []handlers.Filter{verdict(false)}}, {ID: "b", Function: 2},
				{ID: "a", Function: 1},
			},
		},
		"SameIDOtherFunction": {
			reason: "two functions under one id are two handlers", want: []any{"a", "a"},
			all: []*handlers.Handler{{ID: "a", Function: 1}, {ID: "a", Function: 2}},
		},
		"SameFunctionOtherID": {
			reason: "one function under two ids is two handlers", want: []any{"b", "a"},
			all: []*handlers.Handler{{ID: "b", Function: 1}, {ID: "a", Function: 1}},
		},
		"Order": {
			reason: "the order of registration is the order of calls, whatever the ids and the reasons", want: []any{
				"z", "m", "a",
			},
			all: []*handlers.Handler{{ID: "z"}, {ID: "m", Reason: cause.Update}, {ID: "a"}},
		},
		"Nobody": {reason: "nobody is asked, nobody is called"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.cause == nil {
				tc.cause = updated()
			}
			selected, err := adapters.Select(t.Context(), made(tc.all...), tc.cause, nil)
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
