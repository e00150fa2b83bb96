package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
)

// WhenChange restricts a handler or a sub-handler to changes for which the function returns true; other changes are
// treated as if the handler was not registered. The function gets the change as the handler does, but can only read:
// methods that write or post anything fail the filter. It is called often and must be fast. Kopf: when= with old, new,
// diff.
//
//	dbs.OnUpdate("grow", grow, kopf.WhenChange(func(_ context.Context, c *kopf.Change[*v1.Database]) bool {
//		return c.Object.Spec.Size > c.Old.Spec.Size
//	}))
//
// A function for another Go type than that of the selection is an error of the set-up.
func WhenChange[T client.Object](matches func(ctx context.Context, c *Change[T]) bool) changeOption {
	return matchesOption[changeOption]("WhenChange", matches, matches == nil)
}

// WhenEvent restricts a handler of raw events to those for which the function returns true. Unlike [Selection.When], it
// also gets the type of the event. It can only read: the methods that write or post anything fail the filter, and the
// handler is not called. Kopf: when= with type.
//
//	pods.OnEvent("gone", forget, kopf.WhenEvent(func(_ context.Context, e *kopf.WatchEvent[*corev1.Pod]) bool {
//		return e.Type == kopf.WatchEventDeleted
//	}))
func WhenEvent[T client.Object](matches func(ctx context.Context, e *WatchEvent[T]) bool) watchEventOption {
	return matchesOption[watchEventOption]("WhenEvent", matches, matches == nil)
}

// WhenRequest restricts a handler of admission to requests for which the function returns true; other requests are
// allowed without calling the handler. Unlike [Selection.When], it also gets the operation, the user and whether the
// request is a dry run. It sees the object as it was requested, without the changes of other handlers. It can only
// read: with Patch or Warning, or by a panic, the review fails, and the API server denies the request or, with
// [IgnoreFailures], allows it. Kopf: when= with operation, userinfo, dryrun.
//
//	dbs.Validate("owners", check, kopf.WhenRequest(func(_ context.Context, a *kopf.Admission[*v1.Database]) bool {
//		return a.Operation == "UPDATE" && !a.DryRun && a.UserInfo.Username != "admin"
//	}))
func WhenRequest[T client.Object](matches func(ctx context.Context, a *Admission[T]) bool) admissionOption {
	return matchesOption[admissionOption]("WhenRequest", matches, matches == nil)
}

// matchesOption is an option with a function that the verb turns into a filter, as only the verb has the Go type.
func matchesOption[O Option](name string, matches any, missing bool) O {
	var err error
	if missing {
		err = fmt.Errorf("%s: the function is nil: without a condition, leave %s out", name, name)
	}
	return inFamily[O](option{name: name, err: err, matches: matches, set: func(h *handlers.Handler) {
		h.Words.Filters = append(slices.Clip(h.Words.Filters), requirements.Criterion{Text: name, OfChange: true})
	}})
}

// matcherOf returns the function of such an option; nil without one.
func matcherOf[F any](chosen []option) (matches F, given bool, err error) {
	for _, o := range chosen {
		if o.matches == nil {
			continue
		}
		if matches, given = o.matches.(F); !given {
			return matches, false, fmt.Errorf("%s: the function is a %T, but this handler needs a %T: its objects are "+
				"of another Go type", o.name, o.matches, matches)
		}
	}
	return matches, given, nil
}

// changeFilterOf returns the filter of WhenChange; nil without one. The clients are those of the time of the call, as
// there are none before the set-up.
func (s Selection[T]) changeFilterOf(chosen []option) (handlers.Filter, error) {
	matches, given, err := matcherOf[func(ctx context.Context, c *Change[T]) bool](chosen)
	if !given {
		return nil, err
	}
	return func(ctx context.Context, what *cause.Cause) (bool, error) {
		return changeFilter(s.codec, s.kind.op.clients, matches)(ctx, what)
	}, nil
}

// changeFilter is the filter by a function that gets the whole change.
func changeFilter[T client.Object](
	of *codec.Codec[T], cluster clients, matches func(ctx context.Context, c *Change[T]) bool,
) handlers.Filter {
	return func(ctx context.Context, what *cause.Cause) (bool, error) {
		c, err := changeOfFilter(ctx, of, cluster, what)
		if err != nil {
			return false, err
		}
		return matches(ctx, c), c.end(nil)
	}
}

// changeOfFilter is a change that can only be read.
func changeOfFilter[T client.Object](
	ctx context.Context, of *codec.Codec[T], cluster clients, what *cause.Cause,
) (*Change[T], error) {
	object, err := what.Object.Value()
	if err != nil {
		return nil, err
	}
	return newChange(ctx, &handlers.Invocation{Cause: what, Object: object}, of, cluster, nil)
}

// addEventFilter turns WhenEvent into a filter of the handler.
func (s Selection[T]) addEventFilter(h *handlers.Handler, chosen []option) error {
	matches, given, err := matcherOf[func(ctx context.Context, e *WatchEvent[T]) bool](chosen)
	if !given {
		return err
	}
	id := h.ID
	h.Filters = append(slices.Clip(h.Filters), func(ctx context.Context, what *cause.Cause) (bool, error) {
		c, err := changeOfFilter(ctx, s.codec, s.kind.op.clients, what)
		if err != nil {
			return false, err
		}
		c.ID = id
		return matches(ctx, eventOf(c, what.Type)), c.end(nil)
	})
	return nil
}

// addRequestFilter turns WhenRequest into a filter of the handler.
func (fn admitting[T]) addRequestFilter(s Selection[T], h *handlers.Handler, chosen []option) error {
	matches, given, err := matcherOf[func(ctx context.Context, a *Admission[T]) bool](chosen)
	if !given {
		return err
	}
	described := &handlers.Handler{ID: h.ID, Mutating: h.Mutating, Subresource: h.Subresource}
	h.Matches = func(ctx context.Context, call *handlers.Invocation) (bool, error) {
		a, err := fn.newAdmission(ctx, s, &handlers.Invocation{
			Handler: described, Cause: call.Cause, Resource: call.Resource, Admission: call.Admission,
			Given: call.Admission.Body(),
		}, nil)
		if err != nil {
			return false, err
		}
		matched := matches(ctx, a)
		return matched, errors.Join(a.errs...)
	}
	return nil
}
