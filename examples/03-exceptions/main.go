// Command 03-exceptions shows what the errors of handlers lead to: which are tried again, when, and how often.
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

// eventualSuccess is not ready at first, and says when it is worth looking again. Others go on meanwhile.
func eventualSuccess(_ context.Context, c *Change) error {
	if c.Retry < 2 {
		return kopf.Temporary(fmt.Errorf("not ready after %d attempts", c.Retry+1), 2*time.Second)
	}
	return nil
}

// eventualFailure gives up: whatever its limits are, it is not called again for this creation.
func eventualFailure(context.Context, *Change) error {
	return kopf.Permanent(fmt.Errorf("the task is impossible"))
}

// alwaysFailing returns an ordinary error: it is tried again after the backoff, unless the options say otherwise.
func alwaysFailing(context.Context, *Change) error {
	return errors.New("something is wrong")
}

// sleeping takes longer than its timeout: its context ends then, with the reason.
func sleeping(ctx context.Context, _ *Change) error {
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// panicking is an error like any other, with its stack in the log.
func panicking(context.Context, *Change) error {
	var nobody map[string]int
	nobody["written"] = 1 //nolint:govet,staticcheck // the panic is what the example is about
	return nil
}

func recovered(ctx context.Context, _ *Change) error {
	log.FromContext(ctx).Info("Failures of the past do not matter to a new change")
	return nil
}
