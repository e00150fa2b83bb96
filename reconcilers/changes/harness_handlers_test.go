package changes_test

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

type option func(*handlers.Handler)

// on returns a handler for one reason; an empty reason matches any.
func on(reason cause.Reason, id string, fn handlers.Func, options ...option) *handlers.Handler {
	h := &handlers.Handler{ID: id, Reason: reason, Call: fn}
	for _, o := range options {
		o(h)
	}
	return h
}

func onCreate(id string, fn handlers.Func, options ...option) *handlers.Handler {
	return on(cause.Create, id, fn, options...)
}

func onUpdate(id string, fn handlers.Func, options ...option) *handlers.Handler {
	return on(cause.Update, id, fn, options...)
}

func onDelete(id string, fn handlers.Func, options ...option) *handlers.Handler {
	return on(cause.Delete, id, fn, options...)
}

func onResume(id string, fn handlers.Func, options ...option) *handlers.Handler {
	h := on("", id, fn, options...)
	h.Initial = true
	return h
}

func retries(n int) option { return func(h *handlers.Handler) { h.Policy.Retries = &n } }

func timeout(d time.Duration) option { return func(h *handlers.Handler) { h.Policy.Timeout = &d } }

func backoff(d time.Duration) option { return func(h *handlers.Handler) { h.Policy.Backoff = &d } }

func mode(m handlers.ErrorsMode) option { return func(h *handlers.Handler) { h.Policy.Errors = m } }

func when(filter func(c *cause.Cause) bool) option {
	return func(h *handlers.Handler) {
		h.Filters = append(h.Filters, func(_ context.Context, c *cause.Cause) (bool, error) { return filter(c), nil })
	}
}

// ifLabelled restricts a handler to objects with the label on=yes.
var ifLabelled = when(func(c *cause.Cause) bool { return at(c.Body(), "metadata", "labels", "on") == "yes" })

func ok(context.Context, *handlers.Invocation) error { return nil }

// takes returns a handler that works for the given time or until it is cancelled.
func takes(d time.Duration) handlers.Func {
	return func(ctx context.Context, _ *handlers.Invocation) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fails returns a handler that returns the error at its first n calls.
func fails(n int, err error) handlers.Func {
	return func(context.Context, *handlers.Invocation) error {
		if n > 0 {
			n--
			return err
		}
		return nil
	}
}

// returns returns a handler that sets a result.
func returns(value any) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error { return c.Writer.SetResult(value) }
}

// patches returns a handler that patches the value at a path.
func patches(value any, path ...string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		return c.Writer.AddTransform(func(body map[string]any) error { put(body, value, path...); return nil })
	}
}

// all returns a handler that calls the functions in order until one fails.
func all(functions ...handlers.Func) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		for _, fn := range functions {
			if err := fn(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
}

// runs returns a handler that declares and runs sub-handlers.
func runs(subs ...*handlers.Handler) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		for _, sub := range subs {
			if err := c.Subs.Declare(sub); err != nil {
				return err
			}
		}
		return c.Subs.Run(ctx, nil)
	}
}

var errOrdinary = errors.New("it did not work")

type temporaryError struct{ delay time.Duration }

func (e temporaryError) Error() string             { return "not yet" }
func (e temporaryError) RetryAfter() time.Duration { return e.delay }

type permanentError struct{}

func (permanentError) Error() string   { return "never" }
func (permanentError) Permanent() bool { return true }

type undecodableError struct{}

func (undecodableError) Error() string     { return "spec.field: not a number" }
func (undecodableError) Undecodable() bool { return true }

// working returns the object as the function of a call sees it.
func working(c *handlers.Invocation) map[string]any {
	object, err := c.WorkingCopy()
	if err != nil {
		panic(err)
	}
	return object
}
