package facade_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func TestErrorsAreJudgedByTheirWord(t *testing.T) {
	base := errors.New("base")
	type verdict struct {
		Final bool
		Delay *time.Duration
		Text  string
	}
	cases := map[string]struct {
		reason string
		err    error
		policy handlers.Policy
		want   verdict
	}{
		"ordinary": {"for comparison: the default backoff",
			base, handlers.Policy{}, verdict{false, ptr.To(time.Minute), "base"}},
		"temporary": {"the delay is its own",
			kopf.Temporary(base, 5*time.Second), handlers.Policy{}, verdict{false, ptr.To(5 * time.Second), "base"}},
		"temporary in permanent mode": {"the mode is for ordinary errors only",
			kopf.Temporary(base, time.Second), handlers.Policy{Errors: handlers.ErrorsPermanent},
			verdict{false, ptr.To(time.Second), "base"}},
		"temporary at once": {"zero is no delay",
			kopf.Temporary(base, 0), handlers.Policy{}, verdict{false, ptr.To(time.Duration(0)), "base"}},
		"temporary wrapped": {"wrapping must not change what it means",
			fmt.Errorf("more: %w", kopf.Temporary(base, time.Second)),
			handlers.Policy{}, verdict{false, ptr.To(time.Second), "more: base"}},
		"temporary without a reason": {"the handler asked for another attempt",
			kopf.Temporary(nil, time.Second), handlers.Policy{},
			verdict{false, ptr.To(time.Second), "no reason is given"}},
		"permanent": {"it is over",
			kopf.Permanent(base), handlers.Policy{}, verdict{true, nil, "base"}},
		"permanent in ignoring mode": {"the mode is for ordinary errors only",
			kopf.Permanent(base), handlers.Policy{Errors: handlers.ErrorsIgnored}, verdict{true, nil, "base"}},
		"permanent wrapped and joined": {"wherever it is in the tree",
			errors.Join(errors.New("other"), fmt.Errorf("more: %w", kopf.Permanent(base))),
			handlers.Policy{}, verdict{true, nil, "other\nmore: base"}},
		"permanent without a reason": {"a failure was asked for, and a silent success would be worse",
			kopf.Permanent(nil), handlers.Policy{}, verdict{true, nil, "no reason is given"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := execution.Limits{ID: "fn", Policy: c.policy}.Judge(c.err)
			if d := cmp.Diff(c.want, verdict{o.Final, o.Delay, o.Err.Error()}); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
	for _, err := range []error{kopf.Temporary(base, 0), kopf.Permanent(base)} {
		if !errors.Is(err, base) {
			t.Errorf("%T hides what it wraps", err)
		}
	}
}

func TestCauses(t *testing.T) {
	for got, want := range map[error]error{
		kopf.ErrExiting: execution.ErrExiting, kopf.ErrDeleted: changes.ErrDeleted,
		kopf.ErrTimeout: execution.ErrTimeout,
	} {
		if !errors.Is(got, want) {
			t.Errorf("%v is not the engine's %v", got, want)
		}
	}
}

func TestPanics(t *testing.T) {
	a := call(t, one(func(context.Context, *Change) error { panic("oops") }, kopf.Retries(1)), body(nil), nil)
	if !a.Outcome.Final || a.Outcome.Err == nil {
		t.Errorf("a panic is an error like any other, with the same limits, got %+v", a.Outcome)
	}
}
