package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// subs records the declared sub-handlers, and returns the given records.
type subs struct {
	declared  []*handlers.Handler
	err       error
	lifecycle *handlers.Lifecycle
	records   map[string]progress.Record
}

func (s *subs) Declare(h *handlers.Handler) error { s.declared = append(s.declared, h); return nil }

func (s *subs) Run(_ context.Context, lifecycle *handlers.Lifecycle) error {
	s.lifecycle = lifecycle
	return s.err
}

func (s *subs) RecordOf(id string) (progress.Record, error) {
	record, ok := s.records[id]
	if !ok {
		return record, errors.New("not readable")
	}
	return record, nil
}

// parent calls a handler that can have sub-handlers.
func parent(t *testing.T, held *subs, fn func(ctx context.Context, c *Change) error) *execution.Attempt {
	t.Helper()
	return call(t, newCreationOperator(fn), body(nil), nil, func(a *execution.Attempt) { a.Call.Subs = held })
}

// wantFailed requires a permanent failure with the text, or a success if the text is empty.
func wantFailed(t *testing.T, a *execution.Attempt, text string) {
	t.Helper()
	switch {
	case text == "" && a.Outcome.Err == nil && a.Outcome.Final:
	case text == "" || a.Outcome.Err == nil || !a.Outcome.Final || !strings.Contains(a.Outcome.Err.Error(), text):
		t.Errorf("got %+v, want a permanent failure with %q", a.Outcome, text)
	}
}

// TestSubs shows the declaration of sub-handlers, and its errors.
func TestSubs(t *testing.T) {
	held := &subs{err: &execution.PendingError{}}
	with := func(a *execution.Attempt) { a.Call.Subs = held }
	a := call(t, newCreationOperator(func(
		_ context.Context, c *Change,
	) error {
		c.Sub("a b", succeed)
		return nil
	}), body(nil), nil, with)
	if !a.Outcome.Final || a.Outcome.Err == nil || len(held.declared) != 0 {
		t.Errorf("an invalid id must fail permanently: got %+v, %d declared", a.Outcome, len(held.declared))
	}
	a = call(t, newCreationOperator(func(_ context.Context, c *Change) error { c.Sub("a", nil); return nil }),
		body(nil), nil, with)
	if !a.Outcome.Final || a.Outcome.Err == nil {
		t.Errorf("a missing function must fail permanently: got %+v", a.Outcome)
	}
	a = call(t, newCreationOperator(func(_ context.Context, c *Change) error { c.Sub("a", succeed); return nil }),
		body(nil), nil)
	if a.Outcome.Err == nil {
		t.Error("a handler that cannot have sub-handlers must fail if it declares one")
	}
	a = call(t, newCreationOperator(func(ctx context.Context, c *Change) error {
		c.Sub("a", succeed, kopf.Retries(2), kopf.InField("spec.size"), kopf.NewValue(3))
		return c.RunSubs(ctx)
	}), body(nil), nil, with)
	if a.Outcome.Final || a.Outcome.Delay == nil || len(held.declared) != 1 {
		t.Errorf(
			"a handler with unfinished sub-handlers must be called again: got %+v, %d declared", a.Outcome,
			len(held.declared),
		)
	}
	if sub := held.declared[0]; sub.ID != "a" || *sub.Policy.Retries != 2 || sub.To == nil {
		t.Errorf("a sub-handler must have the given options: got %+v", sub)
	}
}

// TestRunSubsLifecycle shows which lifecycle RunSubs uses.
func TestRunSubsLifecycle(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		lifecycles []kopf.Lifecycle
		wantError  string
		want       *handlers.Lifecycle
	}{
		"none": {"without a lifecycle, the operator's one applies", nil, "", nil},
		"one":  {"the given lifecycle applies to this run", []kopf.Lifecycle{kopf.ASAP}, "", ptr.To(handlers.ASAP)},
		"in order": {"InOrder is passed on like any other lifecycle", []kopf.Lifecycle{kopf.InOrder}, "",
			ptr.To(handlers.InOrder)},
		"two": {"two lifecycles are an error", []kopf.Lifecycle{kopf.ASAP, kopf.InOrder}, "2 lifecycles", nil},
		"nil": {
			"a nil lifecycle function is an error", []kopf.Lifecycle{kopf.LifecycleFunc(nil)},
			`handler "fn": LifecycleFunc: the function is nil`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			held := &subs{}
			wantFailed(t, parent(t, held, func(ctx context.Context, c *Change) error {
				err := c.RunSubs(ctx, tc.lifecycles...)
				if d := cmp.Diff(tc.want, held.lifecycle); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				return err
			}), tc.wantError)
		})
	}
}

// TestAfter shows that the options After and AfterFinished are passed to the engine.
func TestAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		opts      []kopf.Option
		wantError string
		want      [2][]string
	}{
		"both": {"After and AfterFinished can be combined", []kopf.Option{
			kopf.After("a", "b"), kopf.AfterFinished("c"), kopf.Retries(2), kopf.InField("spec.size"), kopf.NewValue(1),
		}, "", [2][]string{{"a", "b"}, {"c"}}},
		"a policy": {"JoinOptions can have After", []kopf.Option{kopf.JoinOptions(kopf.After("a"))}, "",
			[2][]string{{"a"}, nil}},
		"none": {"an empty list of ids is accepted",
			[]kopf.Option{kopf.After([]string{}...)}, "", [2][]string{{},
				nil}},
		"empty": {"an empty id is an error", []kopf.Option{kopf.AfterFinished("a", "")}, `("a", "")`,
			[2][]string{}},
		"repeated": {
			"an option that is given twice is an error", []kopf.Option{kopf.After("a"), kopf.After("b")}, "twice",
			[2][]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			held := &subs{}
			wantFailed(t, parent(t, held, func(_ context.Context, c *Change) error {
				c.Sub("s", succeed, kopf.JoinOptions(tc.opts...))
				return nil
			}), tc.wantError)
			var got [2][]string
			for _, h := range held.declared {
				got = [2][]string{h.After, h.AfterFinished}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).OnCreate("fn", succeed, kopf.JoinOptions(kopf.After("a")))
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil || !strings.Contains(err.Error(), "After is not an option of") {
		t.Errorf("After must be an error for a handler without a parent: %v", err)
	}
}

// TestOutcome shows how records of sub-handlers become outcomes.
func TestOutcome(t *testing.T) {
	held := &subs{records: map[string]progress.Record{
		"new":     {},
		"done":    {Success: ptr.To(true), Failure: ptr.To(false), Retries: ptr.To(int64(3)), Message: ptr.To("")},
		"failed":  {Success: ptr.To(false), Failure: ptr.To(true), Retries: ptr.To(int64(1)), Message: ptr.To("boo")},
		"again":   {Success: ptr.To(false), Retries: ptr.To(int64(2)), Message: ptr.To("not yet")},
		"waiting": {Retries: ptr.To(int64(2)), Message: ptr.To("None")},
		"ours":    {Retries: ptr.To(int64(2)), Message: ptr.To("the sub-handlers are not all finished")},
		"forged":  {Success: ptr.To(true), Failure: ptr.To(true)},
	}}
	got := map[string]kopf.SubOutcome{}
	var returned *Change
	wantFailed(t, parent(t, held, func(_ context.Context, c *Change) error {
		returned = c
		for id := range held.records {
			got[id] = c.Outcome(id)
		}
		return nil
	}), "")
	if d := cmp.Diff(map[string]kopf.SubOutcome{
		"new":     {State: kopf.SubPending},
		"done":    {State: kopf.SubSucceeded, Retries: 3},
		"failed":  {State: kopf.SubFailed, Message: "boo", Retries: 1},
		"again":   {State: kopf.SubPending, Message: "not yet", Retries: 2},
		"waiting": {State: kopf.SubPending, Retries: 2},
		"ours":    {State: kopf.SubPending, Retries: 2},
		"forged":  {State: kopf.SubFailed},
	}, got); d != "" {
		t.Errorf("outcomes of records: -want, +got:\n%s", d)
	}
	if outcome := returned.Outcome("failed"); outcome.State != kopf.SubFailed {
		t.Errorf("Outcome must work after the handler has returned: got %+v", outcome)
	}
	for reason, a := range map[string]*execution.Attempt{
		"a record that cannot be read must fail the handler": parent(t, held, func(_ context.Context, c *Change) error {
			if got := c.Outcome("unreadable"); got.State != kopf.SubPending {
				t.Errorf("the outcome of an unreadable record must be pending: got %+v", got)
			}
			return nil
		}),
		"Outcome must fail a handler that cannot have sub-handlers": call(t,
			newCreationOperator(func(_ context.Context, c *Change) error {
				c.Outcome("a")
				return nil
			}), body(nil), nil),
	} {
		if a.Outcome.Err == nil {
			t.Errorf("%s: got %+v", reason, a.Outcome)
		}
	}
}
