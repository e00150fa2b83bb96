package facade

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

var errNoSubs = errors.New("there can be no sub-handlers here: declare them in a handler of changes")

// Sub declares a sub-handler: a part of this handler's work with progress, retries and limits of its own. Which ones
// there are may depend on the object. Kopf: subhandler, register.
//
// # Flow
//
// The sub-handlers are called when the function has returned nil, or by RunSubs, in the order of declaration. While
// they are not all finished, the handler is called again, and declares them again; those that are finished are not
// called again. One that is not declared any more is forgotten. A sub-handler may have sub-handlers.
//
// # Errors
//
// A sub-handler that failed for good is finished; the handler succeeds nevertheless. An invalid or repeated id fails
// the handler for good. The full id is that of the handler with the sub-handler's: "provision/disk".
//
// The object must remember each of them until the handler is finished: thousands are possible, with short ids. If there
// are more than fit, it is logged how many do; these are called, and the handler fails for good in the end: see
// docs/storages.md.
//
// A field among the options is relative to that of the handler, if it has one.
func (c *Change[T]) Sub(id string, fn ChangeFunc[T], opts ...UpdateOption) {
	c.do(func() error {
		if c.call.Subs == nil {
			return errNoSubs
		}
		h := &handlers.Handler{ID: id, Family: handlers.Changing}
		problems := append(checkHandler(id, fn == nil), applyOptions(h, asOptions(opts))...)
		if c.call.Handler.Field == nil || h.Field != nil {
			problems = append(problems, fieldProblems(h)...)
		}
		if err := errors.Join(problems...); err != nil {
			return Permanent(fmt.Errorf("sub-handler %q of handler %q: %w", id, c.ID, err))
		}
		function := reflect.ValueOf(fn).Pointer()
		h.Function, h.Call = function, c.sub(fn, c.mistakes.ofSub(function))
		return c.call.Subs.Declare(h)
	})
}

// sub is the function of a sub-handler as the engine calls it.
func (c *Change[T]) sub(fn ChangeFunc[T], said *mistakes) handlers.Func {
	return func(ctx context.Context, call *handlers.Call) error {
		own, err := newChange(ctx, call, c.codec, c.Client, said)
		if err != nil {
			return err
		}
		return own.end(fn(ctx, own))
	}
}

// RunSubs calls the sub-handlers declared so far, those that are due. If they are not all finished then, it is an error
// that the function must return at once: it is called again when the next of them is due. Kopf: execute.
//
// What the sub-handlers have patched is seen by those after them, but not in c.Object.
func (c *Change[T]) RunSubs(ctx context.Context) error {
	if c.call.Subs == nil {
		return errNoSubs
	}
	return c.call.Subs.Run(ctx)
}
