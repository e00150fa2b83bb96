package facadetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

var (
	errLater = errors.New("not yet")
	errNever = errors.New("never")
)

// provision has four sub-handlers: one that fails first, one that comes after it, one with its own sub-handlers, and
// one that fails permanently.
func provision(disk func() error, c *DatabaseChange) {
	c.Sub("disk", func(_ context.Context, c *DatabaseChange) error {
		c.Patch(func(db *Database) { db.Status.Host = "disk-1" })
		return disk()
	})
	c.Sub("server", func(context.Context, *DatabaseChange) error { return nil }, kopf.After("disk"))
	c.Sub("users", func(_ context.Context, c *DatabaseChange) error {
		for _, user := range c.Object.Spec.Users {
			c.Sub(user, func(context.Context, *DatabaseChange) error { return nil })
		}
		return nil
	})
	c.Sub("license", func(context.Context, *DatabaseChange) error { return kopf.Permanent(errNever) })
}

func TestSubs(t *testing.T) {
	failed := kopf.Temporary(errLater, time.Minute)
	disk := func() error { defer func() { failed = nil }(); return failed }
	handler := func(_ context.Context, c *DatabaseChange) error { provision(disk, c); return nil }

	c := facadetest.NewChange(orders(func(db *Database) { db.Spec.Users = []string{"eve"} }))
	got := c.Call(t.Context(), handler)
	want := []facadetest.Sub{
		{ID: "disk", Called: true, Err: errLater, State: kopf.SubPending},
		{ID: "server", State: kopf.SubPending},
		{ID: "users", Called: true, State: kopf.SubSucceeded},
		{ID: "license", Called: true, Err: errNever, State: kopf.SubFailed},
		{ID: "users/eve", Called: true, State: kopf.SubSucceeded},
	}
	if d := cmp.Diff(want, got.Subs, cmp.Comparer(sameError)); d != "" {
		t.Errorf("the sub-handlers of the first attempt: -want, +got:\n%s", d)
	}
	if got.Final || got.Err == nil || got.Delay != time.Minute || got.Object.Status.Host != "disk-1" {
		t.Errorf("the handler must wait for its sub-handlers: got %+v", got)
	}

	got = c.Call(t.Context(), handler)
	var called []string
	for _, sub := range got.Subs {
		if sub.Called {
			called = append(called, sub.ID)
		}
	}
	if d := cmp.Diff([]string{"disk", "server"}, called); d != "" {
		t.Errorf("only unfinished sub-handlers may be called again: -want, +got:\n%s", d)
	}
	if !got.Final || got.Err != nil {
		t.Errorf("the handler must be finished: got %v, final %v", got.Err, got.Final)
	}
}

func sameError(want, got error) bool {
	return errors.Is(got, want) || errors.Is(want, got) || want != nil && got != nil && want.Error() == got.Error()
}

func TestSubsRunByTheHandler(t *testing.T) {
	var seen kopf.SubOutcome
	got := facadetest.NewChange(orders()).Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
		c.Sub("a", func(context.Context, *DatabaseChange) error { return kopf.Permanent(errNever) })
		if err := c.RunSubs(ctx); err != nil {
			return err
		}
		seen = c.Outcome("a")
		return kopf.Permanent(errLater)
	})
	if seen.State != kopf.SubFailed || !errors.Is(got.Err, errLater) || !got.Final {
		t.Errorf("the handler must get the outcome of its sub-handler: got %+v, error %v", seen, got.Err)
	}
	if len(got.Subs) != 1 || got.Subs[0].State != kopf.SubFailed {
		t.Errorf("the outcome must list the sub-handler as failed: got %+v", got.Subs)
	}
}
