package kopf

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Attempt is an attempt of a handler.
type Attempt struct {
	// ID is the full handler id.
	ID string
	// Retry counts the attempts before; for index functions, the failures in a row. Kopf: retry.
	Retry int
	// Started is when the first attempt was due. Kopf: started.
	Started time.Time
}

type attemptKey struct{}

// AttemptFrom returns the attempt of an index function. In other handlers, found is false.
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
