package kopf

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Lifecycle selects the due handlers that run in one pass, and their order. Kopf: kopf.lifecycles.
type Lifecycle struct{ own handlers.Lifecycle }

// The lifecycles, for [ExecutionSettings].
var (
	// InOrder calls all handlers in the order of registration. The default.
	InOrder = Lifecycle{handlers.InOrder}
	// ASAP calls the handler with the fewest attempts. Kopf: asap, its default.
	ASAP = Lifecycle{handlers.ASAP}
	// OneByOne calls the first handler until it is finished. Kopf: one_by_one.
	OneByOne = Lifecycle{handlers.OneByOne}
	// AllAtOnce is InOrder. Kopf: all_at_once.
	AllAtOnce = Lifecycle{handlers.AllAtOnce}
	// Randomized calls one random handler. Kopf: randomized.
	Randomized = Lifecycle{handlers.Randomized}
	// Shuffled calls all handlers in random order. Kopf: shuffled.
	Shuffled = Lifecycle{handlers.Shuffled}
)

// String returns the name of the lifecycle.
func (l Lifecycle) String() string { return l.own.String() }

// LifecycleFunc makes a lifecycle of a function that returns one or more due handlers. Kopf: execute(lifecycle=).
//
//	kopf.LifecycleFunc(func(_ context.Context, due []kopf.Attempt) []kopf.Attempt { return due[:1] })
func LifecycleFunc(pick func(ctx context.Context, due []Attempt) []Attempt) Lifecycle {
	if pick == nil {
		return Lifecycle{handlers.LifecycleFunc(nil)}
	}
	return Lifecycle{handlers.LifecycleFunc(func(ctx context.Context, due []handlers.DueHandler) []handlers.DueHandler {
		own := make([]Attempt, 0, len(due))
		for _, one := range due {
			own = append(own, Attempt(one))
		}
		var picked []handlers.DueHandler
		for _, one := range pick(ctx, own) {
			picked = append(picked, handlers.DueHandler(one))
		}
		return picked
	})}
}
