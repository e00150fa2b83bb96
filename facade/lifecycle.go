package kopf

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// Lifecycle selects the due handlers that run in one pass, and their order. Kopf: kopf.lifecycles.
type Lifecycle struct{ lifecycle handlers.Lifecycle }

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
func (l Lifecycle) String() string { return l.lifecycle.String() }

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

// Attempt describes an attempt of a handler, for lifecycles and index functions.
type Attempt struct {
	// ID is the full handler id.
	ID string
	// Retry counts the attempts before; for index functions, the failures in a row. Kopf: retry.
	Retry int
	// Started is when the first attempt was due. Kopf: started.
	Started time.Time
}

// attemptKey is the key of the Attempt in the context of an index function.
type attemptKey struct{}

// AttemptFrom returns the attempt of an index function. In other handlers, found is false.
func AttemptFrom(ctx context.Context) (attempt Attempt, found bool) {
	attempt, found = ctx.Value(attemptKey{}).(Attempt)
	return attempt, found
}

// withAttempt returns the context for one call of an index function, whose signature has no room for an argument.
func withAttempt(ctx context.Context, call *handlers.Invocation) context.Context {
	attempt := Attempt{ID: call.Handler.ID, Retry: call.Retry, Started: call.Started}
	// The engine sets the time only after a failure.
	if attempt.Started.IsZero() {
		attempt.Started = time.Now()
	}
	return context.WithValue(ctx, attemptKey{}, attempt)
}

// checkLifecycle returns an error for a lifecycle without a function.
func checkLifecycle(l Lifecycle) error {
	if l.lifecycle.IsValid() {
		return nil
	}
	return errors.New("LifecycleFunc: the function is nil: give one, or take another lifecycle, such as kopf.ASAP")
}
