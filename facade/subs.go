package kopf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

var errNoSubs = errors.New(
	"there can be no sub-handlers here: declare them in a handler of changes, for an object that exists",
)

// Sub declares a sub-handler: a part of the work with its own progress, retries and limits. Kopf: subhandler, register.
//
//	for _, user := range c.Object.Spec.Users {
//		c.Sub(user, addUser(user), kopf.Retries(3)) // the full id is "provision/<user>"
//	}
//
// Sub-handlers run when the function returns nil, or in [Change.RunSubs]. Until all are finished, the handler is called
// again and must declare them again. Then it succeeds, even if some failed: see [Change.Outcome] and
// docs/sub-handlers.md.
func (c *Change[T]) Sub(id string, fn ChangeFunc[T], opts ...subOption) {
	c.runLocked(func() error {
		if c.call.Subs == nil {
			return errNoSubs
		}
		h := &handlers.Handler{ID: id, Family: handlers.Changing}
		chosen, wrong := applyOptions(h, asOptions(opts))
		problems := append(checkHandler(id, fn == nil), wrong...)
		// A sub-handler inherits the field of its handler, so its patterns do not need InField.
		if c.call.Handler.Field == nil || h.Field != nil {
			problems = append(problems, fieldProblems(h)...)
		}
		// The field of a sub-handler is relative to that of its handler.
		if field := slices.Concat(c.call.Handler.Field, h.Field); field != nil {
			problems = append(problems, typeProblems(c.codec, field, chosen)...)
		}
		matches, given, err := matcherOf[func(ctx context.Context, c *Change[T]) bool](chosen)
		if given {
			h.Filters = append(slices.Clip(h.Filters), changeFilter(c.codec, c.subHandlerClients, matches))
		}
		if err = errors.Join(append(problems, err)...); err != nil {
			return Permanent(fmt.Errorf("sub-handler %q of handler %q: %w", id, c.ID, err))
		}
		// Ids of sub-handlers often come from the object, so mistakes are kept by function.
		function := reflect.ValueOf(fn).Pointer()
		h.FunctionKey, h.Call = function, adaptFunction(fn, c.codec, c.subHandlerClients,
			c.mistakes.forSubHandler(function))
		return c.call.Subs.Declare(h)
	})
}

// subHandlerClients returns the clients of this call for its sub-handlers, including a client that the handler has set.
func (c *Change[T]) subHandlerClients() clientSet {
	cluster := c.cluster
	cluster.client, cluster.apiReader = c.Client, c.APIReader
	return cluster
}

// RunSubs calls the due sub-handlers now. Return its error at once. Nil means that all are finished. The default
// lifecycle is that of the operator. Kopf: execute.
func (c *Change[T]) RunSubs(ctx context.Context, lifecycle ...Lifecycle) error {
	if c.hasNoCall() {
		return errWithoutOperator
	}
	if c.call.Subs == nil {
		return errNoSubs
	}
	switch len(lifecycle) {
	case 0:
		return c.call.Subs.Run(ctx, nil)
	case 1:
		if err := checkLifecycle(lifecycle[0]); err != nil {
			return Permanent(fmt.Errorf("RunSubs of handler %q: %w", c.ID, err))
		}
		return c.call.Subs.Run(ctx, &lifecycle[0].lifecycle)
	default:
		return Permanent(fmt.Errorf("RunSubs of handler %q: %d lifecycles are given: give one", c.ID, len(lifecycle)))
	}
}

// After delays a sub-handler until those with these ids have succeeded. If one fails permanently, so does this one.
// Kopf: none.
func After(ids ...string) subOption {
	return dependencyOption("After", ids, func(h *handlers.Handler, ids []string) { h.After = ids })
}

// AfterFinished is [After] for sub-handlers that have succeeded or failed permanently. Kopf: none.
func AfterFinished(ids ...string) subOption {
	return dependencyOption("AfterFinished", ids, func(h *handlers.Handler, ids []string) { h.AfterFinished = ids })
}

// dependencyOption is an option with the ids of other sub-handlers.
func dependencyOption(name string, ids []string, set func(h *handlers.Handler, ids []string)) subOption {
	var err error
	ids = slices.Clone(ids) // the caller may reuse its slice
	if slices.Contains(ids, "") {
		err = fmt.Errorf("%s(%s): no sub-handler has an empty id", name, quoteAll(ids))
	}
	return optionOf[subOption](name, err, func(h *handlers.Handler) { set(h, ids) })
}

// SubState is the state of a sub-handler.
type SubState string

// The states of sub-handlers.
const (
	// SubPending: not finished, or not called at all.
	SubPending SubState = "pending"
	// SubSucceeded: not called again.
	SubSucceeded SubState = "succeeded"
	// SubFailed: failed permanently.
	SubFailed SubState = "failed"
)

// SubOutcome is the outcome of a sub-handler.
type SubOutcome struct {
	State SubState
	// Message is the last error, cut to 256 bytes; empty after success.
	Message string
	// Retries counts the calls, if it is still stored.
	Retries int
}

// Outcome returns the outcome of a sub-handler by its id, also after a restart. Kopf: none.
func (c *Change[T]) Outcome(id string) SubOutcome {
	record, err := c.subHandlerRecord(id)
	if err != nil {
		c.runLocked(func() error {
			return fmt.Errorf("reading the outcome of sub-handler %q of handler %q: %w", id, c.ID, err)
		})
		return SubOutcome{State: SubPending}
	}
	text, retries := ptr.Deref(record.Message, ""), int(ptr.Deref(record.Retries, 0))
	switch {
	case ptr.Deref(record.Failure, false):
		return SubOutcome{State: SubFailed, Message: text, Retries: retries}
	case ptr.Deref(record.Success, false):
		return SubOutcome{State: SubSucceeded, Retries: retries}
	default:
		return SubOutcome{State: SubPending, Message: pendingMessage(text), Retries: retries}
	}
}

// subHandlerRecord returns the record of a sub-handler. It also works after the function has returned, because its
// sub-handlers can call Outcome of their parent.
func (c *Change[T]) subHandlerRecord(id string) (progress.Record, error) {
	if codec.IsInCall() {
		panic(errCalledInPatch) // the engine may be writing this patch, and only the engine has the record
	}
	c.lockCalls()
	defer c.mu.Unlock()
	if c.call.Subs == nil {
		return progress.Record{}, errNoSubs
	}
	return c.call.Subs.RecordOf(id)
}

// pendingMessage removes the message of a handler that only waits for its own sub-handlers. It is not an error of the
// handler. The message is ours, or Kopf's after a take-over.
func pendingMessage(text string) string {
	waits := execution.Outcome{Err: &execution.PendingError{}}
	if text == waits.RecordText(false) || text == waits.RecordText(true) {
		return ""
	}
	return text
}
