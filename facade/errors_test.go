package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// TestTemporaryAndPermanentErrors shows that temporary and permanent errors decide about retries, also if they are
// wrapped.
func TestTemporaryAndPermanentErrors(t *testing.T) {
	base := errors.New("base")
	type verdict struct {
		Final bool
		Delay *time.Duration
		Text  string
	}
	cases := map[string]struct {
		reason string
		err    error
		want   verdict
	}{
		"ordinary": {"an ordinary error is retried after the default backoff",
			base, verdict{false, ptr.To(time.Minute), "base"}},
		"temporary": {"a temporary error is retried after its own delay",
			kopf.Temporary(base, 5*time.Second), verdict{false, ptr.To(5 * time.Second), "base"}},
		"temporary at once": {"a temporary error without a delay is retried immediately",
			kopf.Temporary(base, 0), verdict{false, ptr.To(time.Duration(0)), "base"}},
		"temporary wrapped": {"a wrapped temporary error is temporary",
			fmt.Errorf("more: %w", kopf.Temporary(base, time.Second)),
			verdict{false, ptr.To(time.Second), "more: base"}},
		"temporary without a reason": {"Temporary(nil) is an error that is retried",
			kopf.Temporary(nil, time.Second),
			verdict{false, ptr.To(time.Second), "no reason is given: the error was nil"}},
		"temporary without a unit": {"a delay without a unit becomes one second",
			kopf.Temporary(base, 30), verdict{false, ptr.To(time.Second), "base"}},
		"permanent": {"a permanent error is not retried",
			kopf.Permanent(base), verdict{true, nil, "base"}},
		"permanent wrapped and joined": {"a permanent error is found in wrapped and joined errors",
			errors.Join(errors.New("other"), fmt.Errorf("more: %w", kopf.Permanent(base))),
			verdict{true, nil, "other\nmore: base"}},
		"permanent without a reason": {"Permanent(nil) is an error that is not retried",
			kopf.Permanent(nil), verdict{true, nil, "no reason is given: the error was nil"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := execution.Limits{ID: "fn"}.OutcomeOf(c.err)
			if d := cmp.Diff(c.want, verdict{o.Final, o.Delay, o.Err.Error()}); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
	for _, err := range []error{
		kopf.Temporary(base, 0), kopf.Permanent(base), kopf.Temporary(fmt.Errorf("x: %w", base), 0),
		kopf.Permanent(fmt.Errorf("%w", base)),
	} {
		if !errors.Is(err, base) {
			t.Errorf("%T does not unwrap to its error", err)
		}
	}
}

// TestCauses shows that the exported causes of a context are those of the engine.
func TestCauses(t *testing.T) {
	for got, want := range map[error]error{
		kopf.ErrExiting: execution.ErrExiting, kopf.ErrDeleted: execution.ErrDeleted,
		kopf.ErrTimeout: execution.ErrTimeout,
	} {
		if !errors.Is(got, want) {
			t.Errorf("%v is the same error as %v of the engine", got, want)
		}
	}
}

// TestPanics shows that a panic of a handler is an ordinary error.
func TestPanics(t *testing.T) {
	a := call(t, newCreationOperator(func(context.Context, *Change) error { panic("oops") }, kopf.Retries(1)),
		body(nil), nil)
	if !a.Outcome.Final || a.Outcome.Err == nil {
		t.Errorf("a panic is an error with the limits of other errors: got %+v", a.Outcome)
	}
}
