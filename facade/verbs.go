package kopf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// ChangeFunc handles one change of one object. The handlers run one after another until each has succeeded or failed
// permanently. Then the object becomes the last-handled configuration.
//
// Each change is handled at least once, also after a crash or a downtime of the operator, so the function must be
// idempotent. It never runs concurrently for one object.
//
// # Errors
//
// Nil is success. [Temporary], [Permanent] and reconcile.TerminalError decide about retries, as do methods RetryAfter()
// time.Duration and Permanent() bool. Other errors and panics follow the option [Errors]. If ctx ends before the work
// is done, return an error.
type ChangeFunc[T client.Object] func(ctx context.Context, c *Change[T]) error

// OnCreate registers a handler for objects that were never handled before. Kopf: on.create.
//
// The id names the result, status.<id>, and the stored progress. It is unique for the verb and kind. [FormerIDs]
// renames it.
func (s Selection[T]) OnCreate(id string, fn ChangeFunc[T], opts ...changeOption) {
	registerReasons(s, changeRegistration[T]{"OnCreate", id, fn}, asOptions(opts), ReasonCreate)
}

// OnUpdate registers a handler for objects that differ from the last-handled configuration. Kopf: on.update.
func (s Selection[T]) OnUpdate(id string, fn ChangeFunc[T], opts ...updateOption) {
	registerReasons(s, changeRegistration[T]{"OnUpdate", id, fn}, asOptions(opts), ReasonUpdate)
}

// OnDelete registers a handler for objects that are being deleted. A finalizer holds them until it has succeeded or
// failed permanently: see [Optional], [HoldOnFailure]. Kopf: on.delete.
func (s Selection[T]) OnDelete(id string, fn ChangeFunc[T], opts ...deleteOption) {
	registerReasons(s, changeRegistration[T]{"OnDelete", id, fn}, asOptions(opts), ReasonDelete)
}

// OnResume registers a handler for each object that was handled before and exists when the operator starts, in addition
// to other handlers. Kopf: on.resume.
func (s Selection[T]) OnResume(id string, fn ChangeFunc[T], opts ...resumeOption) {
	registerReasons(s, changeRegistration[T]{"OnResume", id, fn}, asOptions(opts), ReasonResume)
}

// fieldChange is the reason of OnField: any cause in which the field has changed.
const fieldChange Reason = "field"

// CreateUpdateResume returns the reasons for a handler that reconciles: each new state, and each object at the start.
// Kopf: @on.create, @on.update, @on.resume.
func CreateUpdateResume() []Reason { return []Reason{ReasonCreate, ReasonUpdate, ReasonResume} }

// On registers a function for several reasons, with one record, one result, and one call if reasons coincide. It takes
// the options of all their verbs. Kopf: several decorators.
//
//	dbs.On("reconcile", kopf.CreateUpdateResume(), reconcile, kopf.Retries(5))
func (s Selection[T]) On(id string, reasons []Reason, fn ChangeFunc[T], opts ...onOption) {
	own := asOptions(opts)
	own.acceptedFamilies, own.verbDescription = nil, fmt.Sprintf("handlers for %s", joinReasons(reasons))
	for _, reason := range reasons {
		// An option is accepted if any of the verbs has it, and applied to the handlers of those verbs.
		if family, ok := optionFamilies[reason]; ok {
			own.acceptedFamilies = append(own.acceptedFamilies, family)
		}
	}
	if len(own.acceptedFamilies) == 0 { // report the missing reasons, not each option
		own.acceptedFamilies = []reflect.Type{reflect.TypeFor[onOption]()}
	}
	registerReasons(s, changeRegistration[T]{"On", id, fn}, own, reasons...)
}

// verbs contains the verb for each reason. Handlers of On get these verbs, because ids are unique for a verb.
var verbs = map[Reason]string{
	ReasonCreate: "OnCreate", ReasonUpdate: "OnUpdate", ReasonDelete: "OnDelete", ReasonResume: "OnResume",
	fieldChange: "OnField",
}

// optionFamilies contains the options that the verb for each reason accepts.
var optionFamilies = map[Reason]reflect.Type{
	ReasonCreate: reflect.TypeFor[changeOption](), ReasonUpdate: reflect.TypeFor[updateOption](),
	ReasonDelete: reflect.TypeFor[deleteOption](), ReasonResume: reflect.TypeFor[resumeOption](),
	fieldChange: reflect.TypeFor[updateOption](),
}

// checkReasons returns the mistakes in the reasons of On.
func checkReasons(reasons []Reason) []error {
	var problems []error
	if len(reasons) == 0 {
		problems = append(problems, errors.New("no reasons are given: give kopf.CreateUpdateResume(), or others"))
	}
	for i, reason := range reasons {
		switch {
		case verbs[reason] == "" || reason == fieldChange:
			problems = append(problems, fmt.Errorf(
				"there are no handlers for the reason %q: take kopf.ReasonCreate, Update, Delete or Resume", reason,
			))
		case slices.Contains(reasons[:i], reason):
			problems = append(problems, fmt.Errorf("the reason %q is given twice", reason))
		}
	}
	return problems
}

// joinReasons returns the reasons as a list for messages.
func joinReasons(reasons []Reason) string {
	names := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		names = append(names, string(reason))
	}
	return strings.Join(names, ", ")
}

// changeRegistration holds the arguments of a verb for changes.
type changeRegistration[T client.Object] struct {
	verb, id string
	call     ChangeFunc[T]
}

// registerReasons adds a handler for each reason, with the options of the verb for this reason.
func registerReasons[T client.Object](s Selection[T], fn changeRegistration[T], opts verbOptions, reasons ...Reason) {
	registerWithField(s, fn, nil, opts, checkReasons(reasons), reasons...)
}

// registerWithField adds a handler for each reason, with a field that is not given by InField.
func registerWithField[T client.Object](
	s Selection[T], fn changeRegistration[T], field diff.Path, opts verbOptions, problems []error, reasons ...Reason,
) {
	// Apply the options to one handler first: it collects the mistakes, and the id with the field.
	all := handlers.Handler{ID: fn.id, Family: handlers.Changing, Field: field}
	chosen, ok := prepareHandler(s, &all, fn.verb, fn.call == nil, opts, problems)
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
		// A new handler for each reason, so that options of other verbs do not apply to it.
		h := handlers.Handler{
			ID: all.ID, Family: all.Family, Field: field, Filters: all.Filters, Labels: all.Labels,
			FilterDescriptions: handlers.Words{Filters: s.criteria}, RedactedPaths: all.RedactedPaths,
			RecheckOn: s.recheckNotifiers,
			Location:  all.Location,
			Call:      adaptFunction(fn.call, s.codec, s.clients, &loggedMistakes{}),
		}
		setFunction(&h, fn.call)
		for _, o := range chosen {
			if o.fitsFamily(optionFamilies[reason]) {
				o.set(&h)
			}
		}
		// The first handler has the former ids with the field; the option sets them without.
		h.FormerIDs = all.FormerIDs
		setReason(&h, reason)
		s.kind.Registry.RegisterHandler(registry.HandlerEntry{Kind: s.kind, Verb: verbs[reason], Handler: &h})
	}
}

// setReason sets the causes for which the engine calls the handler.
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

// setFunction records which function the handler calls, so that registrations of one function under several selections
// count as one. Closures of one function literal have the same code pointer. The pointer in a function value differs,
// so it identifies the closure.
func setFunction[F any](h *handlers.Handler, fn F) {
	h.FunctionKey = reflect.ValueOf(fn).Pointer()
	h.InstanceKey = reflect.NewAt(reflect.TypeFor[uintptr](), reflect.ValueOf(&fn).UnsafePointer()).Elem().Uint()
}

// prepareHandler completes a handler of any verb from the selection and the options, and records all mistakes. It
// returns the effective options, and false if the handler must not be registered. The parameter missing is true if the
// user's function is nil.
func prepareHandler[T client.Object](
	s Selection[T], h *handlers.Handler, verb string, missing bool, opts verbOptions, problems []error,
) ([]option, bool) {
	id := h.ID
	h.Filters, h.Labels, h.RedactedPaths, h.Location = s.filters, s.labelSelector(), s.redactedPaths,
		registry.CallerLocation()
	h.FilterDescriptions.Filters, h.RecheckOn = s.criteria, s.recheckNotifiers
	chosen, wrong := opts.resolveOptions()
	problems = append(append(checkHandler(id, missing), problems...), wrong...)
	// OnField has its field already, so InField is a mistake there.
	given := h.Field
	for _, o := range chosen {
		if o.set(h); o.name == inFieldName && given != nil {
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
	// The field is part of the id, so this comes after the options.
	h.ID, h.FormerIDs = h.FullID(), h.FullFormerIDs()
	if s.kind == nil {
		problems = append(problems, errors.New("the selection is empty: make it with kopf.For or kopf.ForResource"))
	}
	for _, problem := range problems {
		s.kind.AddError(fmt.Errorf("%s(%q): %w", verb, id, problem))
	}
	return chosen, len(problems) == 0 && s.kind.Find != nil
}

// checkHandler returns the mistakes of an id and a function.
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

// adaptFunction adapts the function to the engine: it creates the argument, and prunes children after a success. It
// reads the clients at each call, because there are none before the set-up.
func adaptFunction[T client.Object](
	fn ChangeFunc[T], of *codec.Codec[T], cluster func() clientSet, said *loggedMistakes,
) handlers.Func {
	return func(ctx context.Context, call *handlers.Invocation) error {
		c, err := newChange(ctx, call, of, cluster(), said)
		if err != nil {
			return err
		}
		return c.finishCall(c.pruneAfterSuccess(ctx, fn(ctx, c)))
	}
}

// newChange creates the argument of a handler or filter. A filter has a call without a Handler.
func newChange[T client.Object](
	ctx context.Context, call *handlers.Invocation, codec *codec.Codec[T], cluster clientSet, said *loggedMistakes,
) (*Change[T], error) {
	object, err := codec.DecodeFrom(call.EncodedObject, call.WorkingCopy)
	if call.Cause.Deleting && execution.IsUndecodable(err) {
		// Usually, an object that does not decode waits until it is changed. A deletion must not wait: the finalizer
		// would hold the object forever.
		logging.Warn(logf.FromContext(ctx),
			"Deleted object does not decode into the Go type; the handler gets what fits", "error", err.Error())
	} else if err != nil {
		return nil, err
	}
	c := &Change[T]{
		Object: object, Reason: Reason(call.Cause.Reason), Retry: call.Retry, Started: call.Started,
		APIReader: cluster.apiReader, callState: callState{log: logf.FromContext(ctx)}, codec: codec, call: call,
		mistakes: said, cluster: cluster,
	}
	c.Client = c.checkedClient(cluster)
	// A handler with a field sees only differences of the field.
	changes := call.Cause.Diff
	if call.Handler != nil {
		c.ID = call.Handler.ID
		_, _, changes = call.Handler.ViewCause(call.Cause)
	}
	c.Diff = Diff(changes.Clone())
	// The former state cannot be repaired any more, so an incomplete Old is better than a handler that never runs.
	if c.Old, err = codec.DecodeOld(call.Cause.Old); err != nil {
		c.log.V(1).Info(
			"The old object does not decode into the type; Old is incomplete",
			"type", fmt.Sprintf("%T", object), "error", err.Error(),
		)
	}
	// The comparison costs time, so it is made for the first calls only, except in tests.
	if said.shouldCheckCall() {
		c.original = codec.NewOriginal(object)
	}
	return c, nil
}

// pruneAfterSuccess deletes undeclared children after a function that returned nil. After a failure, the declarations
// may be incomplete, so nothing is deleted.
func (c *Change[T]) pruneAfterSuccess(ctx context.Context, err error) error {
	c.lockCalls()
	// The lock is released before requests are sent.
	declared, failed := c.declared, err != nil || len(c.errs) > 0
	c.mu.Unlock()
	if failed || declared == nil {
		return err
	}
	return c.pruneChildren(ctx, declared)
}

// finishCall finishes the call after the function has returned: it rejects later method calls, and joins the errors of
// earlier ones with err.
func (c *Change[T]) finishCall(err error) error {
	c.lockCalls()
	defer c.mu.Unlock()
	if err = c.end(err); err != nil {
		c.mistakes.noteDelay(c.log, err)
	} else if c.original != nil {
		c.noteLostChanges()
	}
	return err
}

// noteLostChanges logs changes in place that are lost, after the handler has succeeded.
func (c *Change[T]) noteLostChanges() {
	fields := c.original.LostFields(c.call.WorkingCopy)
	if len(fields) == 0 {
		return
	}
	c.call.ReportLostFields(fields)
	if c.mistakes.inPlaceChange.CompareAndSwap(false, true) {
		logging.Warn(c.log,
			"Handler changed its copy of the object, which is written nowhere; logged once for the handler",
			"fields", fields, "instead", fmt.Sprintf("Patch(func(object %T) { ... })", c.Object))
	}
}
