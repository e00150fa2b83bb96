package kopf

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Attempt is one of several calls of an [IndexFunc] for one object, see [AttemptFrom].
type Attempt struct {
	// Retry counts the calls that failed in a row before this one: 0 at the first one. Kopf: retry.
	Retry int
	// Started is when the first of them began: time.Since(a.Started) is Kopf's runtime. At the first call, it is when
	// that began. Kopf: started.
	Started time.Time
}

type attemptKey struct{}

// AttemptFrom returns the attempt that an [IndexFunc] runs in, from the context of its call. Other functions have the
// same as fields of their first argument; for a context of theirs, it returns false. In a test, the attempt of a plain
// context is the zero value.
func AttemptFrom(ctx context.Context) (attempt Attempt, found bool) {
	attempt, found = ctx.Value(attemptKey{}).(Attempt)
	return attempt, found
}

func withAttempt(ctx context.Context, call *handlers.Invocation) context.Context {
	attempt := Attempt{Retry: call.Retry, Started: call.Started}
	if attempt.Started.IsZero() {
		attempt.Started = time.Now()
	}
	return context.WithValue(ctx, attemptKey{}, attempt)
}
