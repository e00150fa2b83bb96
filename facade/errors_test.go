package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
			verdict{false, ptr.To(time.Second), "no reason is given: the error was nil"}},
		"temporary with format": {"the text is the user's",
			kopf.Temporary(fmt.Errorf("volume %d: %w", 7, base), 5*time.Second), handlers.Policy{},
			verdict{false, ptr.To(5 * time.Second), "volume 7: base"}},
		"temporary without a unit": {"30 nanoseconds cannot be meant",
			kopf.Temporary(base, 30), handlers.Policy{}, verdict{false, ptr.To(time.Second), "base"}},
		"permanent with format": {"the text is the user's",
			kopf.Permanent(
				fmt.Errorf("volume %d: %w", 7, base),
			), handlers.Policy{}, verdict{true, nil, "volume 7: base"}},
		"permanent": {"it is over",
			kopf.Permanent(base), handlers.Policy{}, verdict{true, nil, "base"}},
		"permanent in ignoring mode": {"the mode is for ordinary errors only",
			kopf.Permanent(base), handlers.Policy{Errors: handlers.ErrorsIgnored}, verdict{true, nil, "base"}},
		"permanent wrapped and joined": {"wherever it is in the tree",
			errors.Join(errors.New("other"), fmt.Errorf("more: %w", kopf.Permanent(base))),
			handlers.Policy{}, verdict{true, nil, "other\nmore: base"}},
		"permanent without a reason": {"a failure was asked for, and a silent success would be worse",
			kopf.Permanent(nil), handlers.Policy{}, verdict{true, nil, "no reason is given: the error was nil"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := execution.Limits{ID: "fn", Policy: c.policy}.Judge(c.err)
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
			t.Errorf("%T hides what it wraps", err)
		}
	}
}

// judged is an error of the user's own that says what it is.
type judged struct {
	delay     time.Duration
	permanent bool
}

func (j judged) Error() string             { return "judged" }
func (j judged) RetryAfter() time.Duration { return j.delay }
func (j judged) Permanent() bool           { return j.permanent }

func TestErrorsCanBeAsked(t *testing.T) {
	base := errors.New("base")
	cases := map[string]struct {
		reason    string
		err       error
		permanent bool
		delay     time.Duration
		temporary bool
	}{
		"nil":       {"it is no error", nil, false, 0, false},
		"ordinary":  {"its handler's options decide", base, false, 0, false},
		"temporary": {"", fmt.Errorf("x: %w", kopf.Temporary(base, time.Minute)), false, time.Minute, true},
		"at once":   {"a negative delay is none", kopf.Temporary(base, -time.Minute), false, 0, true},
		"unitless":  {"the delay is that which is taken", kopf.Temporary(base, 30), false, time.Second, true},
		"permanent": {"", fmt.Errorf("x: %w", kopf.Permanent(base)), true, 0, false},
		"terminal":  {"that of controller-runtime", reconcile.TerminalError(base), true, 0, false},
		"own":       {"they are known by their methods", judged{delay: time.Minute}, false, time.Minute, true},
		"own both":  {"permanent wins", judged{time.Minute, true}, true, 0, false},
		"allowed":   {"the outer one decides", kopf.Temporary(kopf.Permanent(base), 1e9), false, time.Second, true},
		"forbidden": {"the outer one decides", kopf.Permanent(kopf.Temporary(base, time.Minute)), true, 0, false},
		"joined": {"what failed permanently is not mended by another try",
			errors.Join(kopf.Temporary(base, time.Minute), kopf.Permanent(base)), true, 0, false},
		"subs": {"RunSubs asks for another call",
			&execution.PendingError{Delay: time.Minute}, false, time.Minute, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			delay, temporary := execution.RetryAfter(tc.err)
			delay = max(delay, 0)
			if execution.IsPermanent(tc.err) != tc.permanent || delay != tc.delay || temporary != tc.temporary {
				t.Errorf("%s: permanent %t, delay %s, temporary %t",
					tc.reason, execution.IsPermanent(tc.err), delay, temporary)
			}
			o := execution.Limits{}.Judge(tc.err)
			if tc.err != nil && o.Final != tc.permanent || temporary && ptr.Deref(o.Delay, 0) != delay {
				t.Errorf("%s: the engine has it otherwise: %+v", tc.reason, o)
			}
		})
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
