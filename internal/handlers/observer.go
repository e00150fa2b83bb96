package handlers

import "context"

// AttemptObserver is called for each attempt, sub-handlers included, before the function is called. It returns the
// context for the function, and a function that is called with the outcome, as the metrics name it, and the error. That
// function is called again if the write of the attempt's changes alters the outcome. Observers are called concurrently.
// An observer can set the Trace of the call, which is stored for the next attempts.
type AttemptObserver func(ctx context.Context, call *Invocation) (
	observed context.Context, ended func(outcome string, err error),
)

// WithInner returns an observer that calls both: the inner one starts later and ends earlier. Either can be nil.
func (o AttemptObserver) WithInner(inner AttemptObserver) AttemptObserver {
	switch {
	case inner == nil:
		return o
	case o == nil:
		return inner
	}
	return func(ctx context.Context, call *Invocation) (context.Context, func(string, error)) {
		ctx, outerEnded := o(ctx, call)
		ctx, innerEnded := inner(ctx, call)
		return ctx, func(outcome string, err error) {
			innerEnded(outcome, err)
			outerEnded(outcome, err)
		}
	}
}
