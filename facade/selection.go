package facade

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Selection says which objects handlers are for: those of one kind, see [For] and [ForResource], that pass all filters.
// Its methods either narrow it down or register a handler.
//
// A selection is a value and never changes: every filter makes a new one, so several can be derived from one. Filters
// look at the object as it is at the moment. An object that no handler selects is left alone, without finalizer,
// annotations and log. One that begins to be selected, and was never handled by this operator, is created in the eyes
// of its handlers; one that was handled before has been updated, if it differs from then.
type Selection[T client.Object] struct {
	ChangeSelection[T]
}

// ChangeSelection is a [Selection] by what happened, rather than by the object alone; so it has the verbs for changes
// only.
type ChangeSelection[T client.Object] struct {
	kind    *kind
	form    *form[T]
	filters []handlers.Filter

	redacted []diff.Path
}

// Labelled narrows the selection down to objects whose labels match a selector, in the syntax of kubectl:
// "tier=prod,!paused", "tier in (prod,test)". A wrong one is an error of the set-up. Kopf: labels=.
func (s Selection[T]) Labelled(selector string) Selection[T] {
	return Selection[T]{s.ChangeSelection.Labelled(selector)}
}

// Annotated narrows the selection down to objects whose annotations match a selector, in the same syntax. The syntax is
// that of labels, so values are of at most 63 letters, digits, "-", "_" and "."; for others, use When. Kopf:
// annotations=.
func (s Selection[T]) Annotated(selector string) Selection[T] {
	return Selection[T]{s.ChangeSelection.Annotated(selector)}
}

// When narrows the selection down to objects for which the function is true. It is called often, for every handler and
// every event, maybe by several goroutines: it should be fast. The object is its own copy.
// A panic, or an object that does not decode into its type, keeps the object waiting. Kopf: when=.
func (s Selection[T]) When(matches func(ctx context.Context, object T) bool) Selection[T] {
	return Selection[T]{s.ChangeSelection.When(matches)}
}

// Labelled is [Selection.Labelled].
func (s ChangeSelection[T]) Labelled(selector string) ChangeSelection[T] {
	return s.bySelector("Labelled", selector, handlers.Labels)
}

// Annotated is [Selection.Annotated].
func (s ChangeSelection[T]) Annotated(selector string) ChangeSelection[T] {
	return s.bySelector("Annotated", selector, handlers.Annotations)
}

func (s ChangeSelection[T]) bySelector(
	method, text string, filter func(labels.Selector) handlers.Filter,
) ChangeSelection[T] {
	selector, err := labels.Parse(text)
	if err != nil {
		s.kind.mistake(fmt.Errorf("%s(%q): invalid selector: %w", method, text, err))
		return s
	}
	return s.narrowed(filter(selector))
}

// When is [Selection.When].
func (s ChangeSelection[T]) When(matches func(ctx context.Context, object T) bool) ChangeSelection[T] {
	if matches == nil {
		s.kind.mistake(errors.New("When: the function is nil"))
		return s
	}
	return s.narrowed(func(ctx context.Context, c *cause.Cause) (bool, error) {
		object, err := s.form.shown(c)
		if err != nil {
			return false, err
		}
		return matches(ctx, object), nil
	})
}

// WhenChange narrows the selection down to changes for which the function is true. It gets the change as a handler
// does, but can only read: the methods that write or post anything fail the filter. For its calls, see
// [Selection.When]; if it is false, the object is as good as not selected. Kopf: when=, with old, new and diff.
func (s ChangeSelection[T]) WhenChange(matches func(ctx context.Context, c *Change[T]) bool) ChangeSelection[T] {
	if matches == nil {
		s.kind.mistake(errors.New("WhenChange: the function is nil"))
		return s
	}
	return s.narrowed(func(ctx context.Context, what *cause.Cause) (bool, error) {
		c, err := s.change(ctx, &handlers.Call{Cause: what, Object: what.Body})
		if err != nil {
			return false, err
		}
		return matches(ctx, c), c.ended(nil)
	})
}

// narrowed clips before it appends: two selections derived from one must not write into the same array.
func (s ChangeSelection[T]) narrowed(filter handlers.Filter) ChangeSelection[T] {
	s.filters = append(slices.Clip(s.filters), filter)
	return s
}
