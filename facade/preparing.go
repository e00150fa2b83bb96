package kopf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// function is what a verb for changes is called with.
type function[T client.Object] struct {
	verb, id string
	call     ChangeFunc[T]
}

// register adds a handler for each of the reasons, with the options that are for it.
func register[T client.Object](s Selection[T], fn function[T], opts choice, reasons ...Reason) {
	registerField(s, fn, nil, opts, checkReasons(reasons), reasons...)
}

// registerField is register with a field that is none of the options.
func registerField[T client.Object](
	s Selection[T], fn function[T], field diff.Path, opts choice, problems []error, reasons ...Reason,
) {
	all := handlers.Handler{ID: fn.id, Family: handlers.Changing, Field: field}
	chosen, ok := prepare(s, &all, fn.verb, fn.call == nil, opts, problems)
	if !ok {
		return
	}
	matches, err := s.changeFilterOf(chosen)
	if err != nil {
		s.kind.AddError(fmt.Errorf("%s(%q): %w", fn.verb, fn.id, err))
		return
	}
	if matches != nil {
		all.Filters = append(slices.Clip(all.Filters), matches)
	}
	for _, reason := range reasons {
		h := handlers.Handler{
			ID: all.ID, Family: all.Family, Field: field, Filters: all.Filters, Labels: all.Labels,
			Words: requirements.Words{Filters: s.words}, Redacted: all.Redacted, RecheckOn: s.rechecks,
			Location: all.Location,
			Call:     s.call(fn.call),
		}
		setFunction(&h, fn.call)
		for _, o := range chosen {
			if o.isFor(families[reason]) {
				o.set(&h)
			}
		}
		h.FormerIDs = all.FormerIDs
		setReason(&h, reason)
		s.kind.Registry.Register(registry.HandlerEntry{Kind: s.kind, Verb: verbs[reason], Handler: &h})
	}
}

func setReason(h *handlers.Handler, reason Reason) {
	switch reason {
	case ReasonResume:
		h.Initial = true
	case fieldChange:
		h.NeedsChange = true
	case ReasonUpdate:
		h.Reason, h.NeedsChange = cause.Reason(reason), true // without a field, for its sub-handlers
	default:
		h.Reason = cause.Reason(reason)
	}
}

// setFunction records which function the handler calls. Closures of one function literal share their code pointer; the
// pointer that a function value holds differs.
func setFunction[F any](h *handlers.Handler, fn F) {
	h.Function = reflect.ValueOf(fn).Pointer()
	h.Instance = reflect.NewAt(reflect.TypeFor[uintptr](), reflect.ValueOf(&fn).UnsafePointer()).Elem().Uint()
}

// prepare fills in what the handlers of all verbs have, and keeps the errors. It gives the options that count; false
// means that there is nothing to be registered.
func prepare[T client.Object](
	s Selection[T], h *handlers.Handler, verb string, missing bool, opts choice, problems []error,
) ([]option, bool) {
	id := h.ID
	h.Filters, h.Labels, h.Redacted, h.Location = s.filters, s.selector(), s.redacted, registry.Location()
	h.Words.Filters, h.RecheckOn = s.words, s.rechecks
	chosen, wrong := opts.resolve()
	problems = append(append(checkHandler(id, missing), problems...), wrong...)
	given := h.Field
	for _, o := range chosen {
		if o.set(h); o.name == inField && given != nil {
			problems = append(problems, fmt.Errorf(
				"InField(%s): the handler has its field already: %s; leave InField out",
				codec.FormatPath(h.Field), codec.FormatPath(given),
			))
			h.Field = given
		}
	}
	if h.Optional && h.HoldOnFailure {
		problems = append(problems, errors.New("HoldOnFailure needs the finalizer, and Optional adds none: keep one"))
	}
	problems = append(problems, fieldProblems(h)...)
	if s.codec != nil && h.Field != nil {
		problems = append(problems, typeProblems(s.codec, h.Field, chosen)...)
	}
	h.ID, h.FormerIDs = h.FullID(), h.FullFormerIDs()
	if s.kind == nil {
		problems = append(problems, errors.New("the selection is empty: make it with kopf.For or kopf.ForResource"))
	}
	for _, problem := range problems {
		s.kind.AddError(fmt.Errorf("%s(%q): %w", verb, id, problem))
	}
	return chosen, len(problems) == 0 && s.kind.Find != nil
}

// checkHandler tells what is wrong with an id and a function.
func checkHandler(id string, missing bool) []error {
	var problems []error
	if err := keys.ValidateID(id); err != nil {
		problems = append(problems, err)
	}
	if missing {
		problems = append(problems, errors.New("the function is nil: set it before the handler is registered"))
	}
	return problems
}
