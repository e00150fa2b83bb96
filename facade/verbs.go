package facade

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// Reason is why an object is handled. Kopf: Reason.
type Reason = cause.Reason

// The reasons that have handlers.
const (
	// ReasonCreate: the object was never handled to the end. Kopf: Reason.CREATE.
	ReasonCreate = cause.Create
	// ReasonUpdate: the object differs from what was handled last, whenever that was. Kopf: Reason.UPDATE.
	ReasonUpdate = cause.Update
	// ReasonDelete: the object is being deleted, and the operator's finalizer holds it. Kopf: Reason.DELETE.
	ReasonDelete = cause.Delete
	// ReasonResume: nothing changed while the operator was not running. Kopf: Reason.RESUME.
	ReasonResume = cause.Resume
)

// ChangeFunc is a function that handles a change of one object.
//
// # Flow
//
// All handlers of a change are called one after another, in the order of registration, each until it succeeds or fails
// for good. Then the change is over, and the present object is remembered as the one that was handled last.
//
// # Guarantees
//
// It is called at least once for a change, also for one made while the operator was down, and again after a crash until
// its success is written: so it must be idempotent. Two functions for one object are never called at once. How far each
// handler got is kept on the object, and survives restarts.
//
// # Errors
//
// Nil is a success. [Temporary] and [Permanent] say what they are, as does any error in the chain with a method
// RetryAfter() time.Duration or Permanent() bool; controller-runtime's TerminalError is permanent. Others mean what the
// option [Errors] says. A panic is an ordinary error. When the context ends, the function should return soon, with an
// error unless it is done: nil is a success. The error does not count if the operator is exiting.
type ChangeFunc[T client.Object] func(ctx context.Context, c *Change[T]) error

// OnCreate registers a handler for objects that were never handled before, whether new or not. Kopf: on.create.
//
// The id is what the progress and the result are kept under on the object: status.<id>, and the annotation
// "<operator>/<id>" while the handler is unfinished. It must not change as long as such objects are around, and is
// unique among the handlers of this verb and kind. The same id may stand under several verbs, see On.
func (s ChangeSelection[T]) OnCreate(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	register(s, "OnCreate", id, fn, opts, ReasonCreate)
}

// OnUpdate registers a handler for objects that differ from what was handled last. Kopf: on.update.
func (s ChangeSelection[T]) OnUpdate(id string, fn ChangeFunc[T], opts ...UpdateOption) {
	register(s, "OnUpdate", id, fn, opts, ReasonUpdate)
}

// OnDelete registers a handler for objects that are being deleted. Its finalizer holds them until the handler has
// succeeded, or failed for good, unless it is [Optional]. Kopf: on.delete.
func (s ChangeSelection[T]) OnDelete(id string, fn ChangeFunc[T], opts ...DeleteOption) {
	register(s, "OnDelete", id, fn, opts, ReasonDelete)
}

// OnResume registers a handler for objects that were there when the operator started: it is called once for each, in
// addition to the handlers of what has happened to it meanwhile. It is not called for new objects. Kopf: on.resume.
func (s ChangeSelection[T]) OnResume(id string, fn ChangeFunc[T], opts ...ResumeOption) {
	register(s, "OnResume", id, fn, opts, ReasonResume)
}

// On registers one function for several reasons, as the single verbs would do one by one with one id: the handler has
// one record and one result, and is called once where several reasons come together, such as an update found on a
// restart. Kopf: several decorators on one function.
func (s ChangeSelection[T]) On(id string, reasons []Reason, fn ChangeFunc[T], opts ...ChangeOption) {
	register(s, "On", id, fn, opts, reasons...)
}

// verbs are what ids are unique under.
var verbs = map[Reason]string{
	ReasonCreate: "OnCreate", ReasonUpdate: "OnUpdate", ReasonDelete: "OnDelete", ReasonResume: "OnResume",
	fieldChange: "OnField",
}

func register[T client.Object, O Option](
	s ChangeSelection[T], verb, id string, fn ChangeFunc[T], opts []O, reasons ...Reason,
) {
	template := handlers.Handler{ID: id, Family: handlers.Changing}
	if !prepare(s, &template, verb, fn == nil, asOptions(opts), checkReasons(reasons)) {
		return
	}
	template.Call = s.call(fn)
	// All closures of one function literal have the same pointer, though they are different functions. The difference
	// is nowhere to be seen: only handlers of one id are compared, and they share one record, so one of them is called.
	template.Function = reflect.ValueOf(fn).Pointer()
	for _, reason := range reasons {
		h := template
		h.Reason = reason
		switch reason {
		case ReasonResume:
			h.Reason, h.Initial = "", true
		case fieldChange:
			h.Reason, h.NeedsChange = "", true
		case ReasonUpdate:
			h.NeedsChange = true // without a field, for its sub-handlers
		}
		s.kind.op.register(registration{kind: s.kind, verb: verbs[reason], handler: &h})
	}
}

// prepare fills in what the handlers of all verbs have, and keeps the errors. False means that there is nothing to be
// registered.
func prepare[T client.Object](
	s ChangeSelection[T], h *handlers.Handler, verb string, missing bool, opts []Option, problems []error,
) bool {
	id := h.ID
	h.Filters, h.Redacted, h.Location = s.filters, s.redacted, location()
	problems = append(append(checkHandler(id, missing), problems...), applyOptions(h, opts)...)
	problems = append(problems, fieldProblems(h)...)
	if s.codec != nil && h.Field != nil {
		if err := s.codec.CheckField(h.Field); err != nil {
			problems = append(problems, err)
		}
	}
	h.ID = handlers.FullID(id, h.Family, h.Field)
	if s.kind == nil {
		problems = append(problems, errors.New("the selection is empty: make it with kopf.For or kopf.ForResource"))
	}
	for _, problem := range problems {
		s.kind.addError(fmt.Errorf("%s(%q): %w", verb, id, problem))
	}
	return len(problems) == 0 && s.kind.find != nil
}

// checkHandler tells what is wrong with an id and a function.
func checkHandler(id string, missing bool) []error {
	var problems []error
	if err := keys.ValidateID(id); err != nil {
		problems = append(problems, err)
	}
	if missing {
		problems = append(problems, errors.New("the function is nil"))
	}
	return problems
}

// checkReasons tells what is wrong with the reasons of On.
func checkReasons(reasons []Reason) []error {
	var problems []error
	if len(reasons) == 0 {
		problems = append(problems, errors.New("no reasons are given"))
	}
	for i, reason := range reasons {
		switch {
		case verbs[reason] == "":
			problems = append(problems, fmt.Errorf("there are no handlers for the reason %q", reason))
		case slices.Contains(reasons[:i], reason):
			problems = append(problems, fmt.Errorf("the reason %q is given twice", reason))
		}
	}
	return problems
}

// asOptions makes options of one family those of any.
func asOptions[O Option](opts []O) []Option {
	wide := make([]Option, 0, len(opts))
	for _, opt := range opts {
		wide = append(wide, opt)
	}
	return wide
}
