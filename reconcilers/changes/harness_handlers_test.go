package changes_test

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

type option func(*handlers.Handler)

// on is a handler of one reason; an empty reason is any.
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

// labelled is the filter of objects with the label on=yes.
var labelled = when(func(c *cause.Cause) bool { return at(c.Body(), "metadata", "labels", "on") == "yes" })

func ok(context.Context, *handlers.Invocation) error { return nil }

// takes works for a while, unless it is told to stop.
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

// fails returns the error at the first n calls.
func fails(n int, err error) handlers.Func {
	return func(context.Context, *handlers.Invocation) error {
		if n > 0 {
			n--
			return err
		}
		return nil
	}
}

// returns sets a result.
func returns(value any) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error { return c.Writes.SetResult(value) }
}

// patches remembers a value for a path.
func patches(value any, path ...string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		return c.Writes.Remember(func(body map[string]any) error { put(body, value, path...); return nil })
	}
}

// all calls one function after another, until one fails.
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

// runs calls sub-handlers.
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

// working is the object of a call as its function sees it.
func working(c *handlers.Invocation) map[string]any {
	object, err := c.Working()
	if err != nil {
		panic(err)
	}
	return object
}
