package kopf

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Lifecycle decides which of the due handlers of an object are called in one pass, and in which order. The zero value
// is [InOrder]. Lifecycles can be compared with ==. Kopf: kopf.lifecycles.
type Lifecycle struct{ own handlers.Lifecycle }

// The lifecycles, for [ExecutionSettings].
var (
	// InOrder calls all handlers in the order of registration, each after the one before has returned. The default.
	InOrder = Lifecycle{handlers.InOrder}
	// ASAP calls the handler with the fewest attempts, saves its outcome, and starts over. Kopf's default: asap.
	ASAP = Lifecycle{handlers.ASAP}
	// OneByOne calls the first handler until it is finished. Kopf: one_by_one.
	OneByOne = Lifecycle{handlers.OneByOne}
	// AllAtOnce is InOrder under Kopf's name. Kopf: all_at_once.
	AllAtOnce = Lifecycle{handlers.AllAtOnce}
	// Randomized calls one handler at random. Kopf: randomized.
	Randomized = Lifecycle{handlers.Randomized}
	// Shuffled calls all handlers in random order. Kopf: shuffled.
	Shuffled = Lifecycle{handlers.Shuffled}
)

// String returns the name of the lifecycle.
func (l Lifecycle) String() string { return l.own.String() }

// LifecycleFunc makes a lifecycle of a function. The function gets the handlers of one object that are due, in the
// order of registration, and returns those to be called, in the order of the calls. Then their outcomes are written,
// and it is called again with the handlers that are due at that point. With [Change.RunSubs], the handlers are
// sub-handlers.
//
//	twoAtATime := kopf.LifecycleFunc(func(_ context.Context, due []kopf.Attempt) []kopf.Attempt {
//		return due[:min(2, len(due))]
//	})
//
// The function must pick at least one handler, each once. Otherwise, and if it panics, the object is retried after a
// delay, see [QueueingSettings].ErrorDelays; in RunSubs, it is the error of the call. Several goroutines may call it at
// once. Kopf: a function given to set_default_lifecycle, or to execute(lifecycle=).
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
