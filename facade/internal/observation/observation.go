package observation

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Observer is told of each attempt before the function is called. It gives the context for the function, and what is
// told of the outcome: one of success, ignored, retry, failure, aborted. Many goroutines call it at once.
type Observer func(ctx context.Context, call *handlers.Call) (
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
