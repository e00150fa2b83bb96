package observation

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Observer is told of each attempt before the function is called. It gives the context for the function, and what is
// told of the outcome: one of success, ignored, retry, failure, aborted. Many goroutines call it at once. What it sets
// as the Trace of the call is kept for the next attempts.
type Observer func(ctx context.Context, call *handlers.Invocation) (
	observed context.Context, ended func(outcome string, err error),
)

type key struct{}

// Into gives a context with the observer.
func Into(ctx context.Context, o Observer) context.Context { return context.WithValue(ctx, key{}, o) }

// From gives the observer of the context; nil if there is none.
func From(ctx context.Context) Observer {
	o, _ := ctx.Value(key{}).(Observer)
	return o
}

// Beside has two observers told, the second one inside of the first: it begins later, and ends earlier. Nil is none.
func Beside(outer, inner Observer) Observer {
	switch {
	case inner == nil:
		return outer
	case outer == nil:
		return inner
	}
	return func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
		ctx, ended := outer(ctx, call)
		ctx, told := inner(ctx, call)
		return ctx, func(outcome string, err error) {
			told(outcome, err)
			ended(outcome, err)
		}
	}
}
