package kopf

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Attempt is one attempt of a handler, for [AttemptFrom] and [LifecycleFunc].
type Attempt struct {
	// ID is the full id of the handler.
	ID string
	// Retry counts the attempts before this one: 0 at the first one. For an index function, it counts the failures in a
	// row. Kopf: retry.
	Retry int
	// Started is when the first of them was due: time.Since(a.Started) is Kopf's runtime. Kopf: started.
	Started time.Time
}

type attemptKey struct{}

// AttemptFrom returns the attempt of an index function from the context of its call, see [NewIndex]. Other handlers have
// these values in their argument; for their contexts, found is false.
func AttemptFrom(ctx context.Context) (attempt Attempt, found bool) {
	attempt, found = ctx.Value(attemptKey{}).(Attempt)
	return attempt, found
}

func withAttempt(ctx context.Context, call *handlers.Invocation) context.Context {
	attempt := Attempt{ID: call.Handler.ID, Retry: call.Retry, Started: call.Started}
	if attempt.Started.IsZero() {
		attempt.Started = time.Now()
	}
	return context.WithValue(ctx, attemptKey{}, attempt)
}
