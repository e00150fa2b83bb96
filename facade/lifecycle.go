package kopf

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Lifecycle decides which of the handlers that are due for an object are called in one go, and in which order. The zero
// value is [InOrder]. Kopf: kopf.lifecycles.
type Lifecycle = handlers.Lifecycle

// DueHandler is a handler that a [LifecycleFunc] can pick.
type DueHandler = handlers.DueHandler

// The lifecycles, for [ExecutionSettings].
var (
	// InOrder calls all of them, in the order of registration, each when the one before has returned; the default.
	InOrder = handlers.InOrder
	// ASAP calls the one with the fewest attempts, writes its outcome, and looks again. It is Kopf's default: asap.
	ASAP = handlers.ASAP
	// OneByOne calls the first one until it is finished. Kopf: one_by_one.
	OneByOne = handlers.OneByOne
	// AllAtOnce is InOrder under Kopf's name. Kopf: all_at_once.
	AllAtOnce = handlers.AllAtOnce
	// Randomized calls one at random. Kopf: randomized.
	Randomized = handlers.Randomized
	// Shuffled calls all of them in random order. Kopf: shuffled.
	Shuffled = handlers.Shuffled
)

// LifecycleFunc makes a lifecycle of a function. The function gets the handlers of one object that are due, in the
// order of registration, and returns those to be called, in the order of the calls. Then their outcomes are written,
// and it is called again with the handlers that are due at that point. With [Change.RunSubs], the handlers are
// sub-handlers.
//
//	twoAtATime := kopf.LifecycleFunc(func(_ context.Context, due []kopf.DueHandler) []kopf.DueHandler {
//		return due[:min(2, len(due))]
//	})
//
// The function must pick at least one handler, each once. Otherwise, and if it panics, the object is retried after a
// delay, see [QueueingSettings].ErrorDelays; in RunSubs, it is the error of the call. Several goroutines may call it at
// once. Kopf: a function given to set_default_lifecycle, or to execute(lifecycle=).
func LifecycleFunc(pick func(ctx context.Context, due []DueHandler) []DueHandler) Lifecycle {
	return handlers.LifecycleFunc(pick)
}
