// Command 03-exceptions shows the effects of errors of handlers: which are retried, when, and how often.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*kopf.Unstructured]

func main() {
	op := kopf.New("exceptions.kopf.dev", kopf.Settings{
		Execution: kopf.ExecutionSettings{DefaultBackoff: 5 * time.Second},
	})

	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.OnCreate("eventual_success", eventualSuccess)
	examples.OnCreate("eventual_failure", eventualFailure)
	examples.OnCreate("limited", alwaysFailing, kopf.Retries(3), kopf.Backoff(time.Second))
	examples.OnCreate("timed_out", sleeping, kopf.Timeout(3*time.Second))
	examples.OnCreate("ignored", alwaysFailing, kopf.Errors(kopf.ErrorsIgnored))
	examples.OnCreate("panicking", panicking, kopf.Retries(1))
	examples.OnUpdate("recovered", recovered)
	examples.OnDelete("gone", recovered)

	kopf.Main(op)
}

// eventualSuccess fails at first, and returns the delay before the next attempt. Other handlers go on meanwhile.
func eventualSuccess(_ context.Context, c *Change) error {
	if c.Retry < 2 {
		return kopf.Temporary(fmt.Errorf("not ready after %d attempts", c.Retry+1), 2*time.Second)
	}
	return nil
}

// eventualFailure returns a permanent error: regardless of its limits, it is not called again for this creation.
func eventualFailure(context.Context, *Change) error {
	return kopf.Permanent(fmt.Errorf("the task is impossible"))
}

// alwaysFailing returns an ordinary error: it is retried after the backoff, as often as its options allow.
func alwaysFailing(context.Context, *Change) error {
	return errors.New("something is wrong")
}

// sleeping takes longer than its timeout: its context is cancelled, with the timeout as the cause.
func sleeping(ctx context.Context, _ *Change) error {
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// panicking panics, which is handled like an ordinary error, with the stack in the log.
func panicking(context.Context, *Change) error {
	var nobody map[string]int
	nobody["written"] = 1 //nolint:govet,staticcheck // the panic is what the example is about
	return nil
}

func recovered(ctx context.Context, _ *Change) error {
	log.FromContext(ctx).Info("Failures of the past do not matter to a new change")
	return nil
}
