package kopf

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// WhenChange calls a handler only for changes for which the function returns true, such as c.Object.Spec.Size >
// c.Old.Spec.Size. The function can only read: a write fails the filter. Kopf: when= with old, new, diff.
func WhenChange[T client.Object](matches func(ctx context.Context, c *Change[T]) bool) changeOption {
	return matchesOption[changeOption]("WhenChange", matches, matches == nil)
}

// matchesOption is an option with a function of the user. Only the verb has the Go type of the objects, so the verb
// turns the function into a filter.
func matchesOption[O Option](name string, matches any, missing bool) O {
	var err error
	if missing {
		err = fmt.Errorf("%s: the function is nil: without a condition, leave %s out", name, name)
	}
	return withFamily[O](option{name: name, err: err, predicate: matches, set: func(h *handlers.Handler) {
		h.FilterDescriptions.Filters = append(slices.Clip(h.FilterDescriptions.Filters),
			handlers.Criterion{Text: name, OfChange: true})
	}})
}

// matcherOf returns the function of such an option as F, and whether there is one.
func matcherOf[F any](chosen []option) (matches F, given bool, err error) {
	for _, o := range chosen {
		if o.predicate == nil {
			continue
		}
		// The compiler does not check that the type parameters of the option and of the verb are the same.
		if matches, given = o.predicate.(F); !given {
			return matches, false, fmt.Errorf("%s: the function is a %T, but this handler needs a %T: its objects are "+
				"of another Go type", o.name, o.predicate, matches)
		}
	}
	return matches, given, nil
}

// changeFilterOf returns the filter of WhenChange; nil without one.
func (s Selection[T]) changeFilterOf(chosen []option) (handlers.Filter, error) {
	matches, given, err := matcherOf[func(ctx context.Context, c *Change[T]) bool](chosen)
	if !given {
		return nil, err
	}
	return changeFilter(s.codec, s.clients, matches), nil
}

// changeFilter returns a filter by a function that gets the whole change.
func changeFilter[T client.Object](
	of *codec.Codec[T], cluster func() clientSet, matches func(ctx context.Context, c *Change[T]) bool,
) handlers.Filter {
	return func(ctx context.Context, what *cause.Cause) (bool, error) {
		c, err := changeOfFilter(ctx, of, cluster(), what)
		if err != nil {
			return false, err
		}
		// The errors of its method calls, such as of Patch, fail the filter.
		return matches(ctx, c), c.finishCall(nil)
	}
}

// changeOfFilter returns a change that can only be read: without Writes, methods that write return errors.
func changeOfFilter[T client.Object](
	ctx context.Context, of *codec.Codec[T], cluster clientSet, what *cause.Cause,
) (*Change[T], error) {
	object, err := what.Object.Value()
	if err != nil {
		return nil, err
	}
	return newChange(ctx, &handlers.Invocation{Cause: what, Object: object}, of, cluster, nil)
}

// All joins predicates of [Selection.When], [WhenChange] and patterns with and. Kopf: all_.
//
//	dbs.When(kopf.All(isLarge, kopf.Not(isPaused)))
func All[A, B any](predicates ...func(A, B) bool) func(A, B) bool {
	own := slices.Clone(predicates)
	return func(a A, b B) bool {
		return !slices.ContainsFunc(own, func(is func(A, B) bool) bool { return !is(a, b) })
	}
}

// Any joins predicates with or. Kopf: any_.
func Any[A, B any](predicates ...func(A, B) bool) func(A, B) bool {
	own := slices.Clone(predicates)
	return func(a A, b B) bool {
		return slices.ContainsFunc(own, func(is func(A, B) bool) bool { return is(a, b) })
	}
}

// Not negates a predicate. Kopf: not_.
func Not[A, B any](predicate func(A, B) bool) func(A, B) bool {
	return func(a A, b B) bool { return !predicate(a, b) }
}
