package kopf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

var errNoSubs = errors.New(
	"there can be no sub-handlers here: declare them in a handler of changes, for an object that exists",
)

// Sub declares a sub-handler: a part of this handler's work with progress, retries and limits of its own. Which ones
// there are may depend on the object. Kopf: subhandler, register.
//
// # Flow
//
// The sub-handlers are called when the function has returned nil, or by RunSubs, in the order of declaration, unless
// one comes [After] another. While they are not all finished, the handler is called again, and declares them again;
// those that are finished are not called again: so an id is for one piece of work, and another piece, such as taking
// back what the first one did, has another id. One that is not declared any more is forgotten. A sub-handler may have
// sub-handlers.
//
// # Errors
//
// A sub-handler that failed for good is finished; the handler succeeds nevertheless, unless it looks at the Outcome. An
// invalid or repeated id fails the handler for good. The full id is that of the handler with the sub-handler's:
// "provision/disk".
//
// The object must remember each of them until the handler is finished: thousands are possible, with short ids. If there
// are more than fit, it is logged how many do; these are called, and the handler fails for good in the end: see
// docs/storages.md.
//
// A field among the options is relative to that of the handler, if it has one. [MatchingLabels], [MatchingAnnotations]
// and [WhenChange] among them restrict the sub-handler to some objects and changes.
func (c *Change[T]) Sub(id string, fn ChangeFunc[T], opts ...subOption) {
	c.do(func() error {
		if c.call.Subs == nil {
			return errNoSubs
		}
		h := &handlers.Handler{ID: id, Family: handlers.Changing}
		chosen, wrong := applyOptions(h, asOptions(opts))
		problems := append(checkHandler(id, fn == nil), wrong...)
		if c.call.Handler.Field == nil || h.Field != nil {
			problems = append(problems, fieldProblems(h)...)
		}
		if field := slices.Concat(c.call.Handler.Field, h.Field); field != nil {
			problems = append(problems, typeProblems(c.codec, field, chosen)...)
		}
		matches, given, err := matcherOf[func(ctx context.Context, c *Change[T]) bool](chosen)
		if given {
			h.Filters = append(slices.Clip(h.Filters), changeFilter(c.codec, c.clients(), matches))
		}
		if err = errors.Join(append(problems, err)...); err != nil {
			return Permanent(fmt.Errorf("sub-handler %q of handler %q: %w", id, c.ID, err))
		}
		function := reflect.ValueOf(fn).Pointer()
		h.Function, h.Call = function, c.sub(fn, c.mistakes.ofSub(function))
		return c.call.Subs.Declare(h)
	})
}

// sub is the function of a sub-handler as the engine calls it.
func (c *Change[T]) sub(fn ChangeFunc[T], said *mistakes) handlers.Func {
	return func(ctx context.Context, call *handlers.Invocation) error {
		own, err := newChange(ctx, call, c.codec, c.clients(), said)
		if err != nil {
			return err
		}
		return own.end(own.succeed(ctx, fn(ctx, own)))
	}
}

// clients are those of the operator, as the handler got them.
func (c *Change[T]) clients() clients {
	return clients{
		client: c.Client, live: c.APIReader, children: c.children, keys: c.keys, watches: c.watches, finalizer: c.finalizer,
	}
}

// RunSubs calls the sub-handlers declared so far, those that are due. If they are not all finished then, it is an error
// that the function must return at once: it is called again when the next of them is due. Nil is the end of all of
// them, be it a success or not: see Outcome. Kopf: execute.
//
// What the sub-handlers have patched is seen by those after them, but not in c.Object. Their loggers name them, in
// place of this handler, and have none of the values that it has added to its own.
//
// A lifecycle says which of them are called in one go; without, it is that of the operator. More than one, or a
// [LifecycleFunc] of nil, fails the handler permanently. Kopf: lifecycle=.
func (c *Change[T]) RunSubs(ctx context.Context, lifecycle ...Lifecycle) error {
	if c.byHand() {
		return errByHand
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
		return c.call.Subs.Run(ctx, &lifecycle[0].own)
	default:
		return Permanent(fmt.Errorf("RunSubs of handler %q: %d lifecycles are given: give one", c.ID, len(lifecycle)))
	}
}

// After makes a sub-handler wait until those with these ids have succeeded. The ids are as in c.Sub, those of
// sub-handlers of the same handler; with none of them, there is nothing to wait for.
//
// If one of them has failed for good, so does this one, without a call: its error names that one. One that does not
// match, such as by its field, has nothing to do for this change, and is not waited for. A timeout counts from the
// moment at which the waiting is over.
//
// What has succeeded may not be written yet: after a crash, it is called again, and so is this one. If that must not
// be, call Flush at the beginning of this one.
//
// An id that is neither declared before the sub-handlers are run nor finished already, and sub-handlers that wait for
// one another, fail the handler for good. Kopf: none.
func After(ids ...string) subOption {
	return dependency("After", ids, func(h *handlers.Handler, ids []string) { h.After = ids })
}

// AfterFinished makes a sub-handler wait until those with these ids are finished, whether they have succeeded or failed
// for good. All else is as with [After]; a sub-handler may have both. Kopf: none.
func AfterFinished(ids ...string) subOption {
	return dependency("AfterFinished", ids, func(h *handlers.Handler, ids []string) { h.AfterFinished = ids })
}

func dependency(name string, ids []string, set func(h *handlers.Handler, ids []string)) subOption {
	var err error
	ids = slices.Clone(ids) // the handler may go on with its list
	if slices.Contains(ids, "") {
		err = fmt.Errorf("%s(%s): no sub-handler has an empty id", name, quoteAll(ids))
	}
	return optionOf[subOption](name, err, func(h *handlers.Handler) { set(h, ids) })
}
