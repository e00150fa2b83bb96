package handlers

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// ErrorsMode says what an ordinary error means: one that is neither temporary nor permanent by its own word.
type ErrorsMode int

// The modes, with Kopf's names in capitals: ErrorsMode.TEMPORARY and so on.
const (
	// ErrorsDefault is the default of the handler's family: temporary for changing handlers.
	ErrorsDefault ErrorsMode = iota
	// ErrorsTemporary retries after the backoff.
	ErrorsTemporary
	// ErrorsPermanent fails for good.
	ErrorsPermanent
	// ErrorsIgnored counts as a success without a result.
	ErrorsIgnored
)

// Policy limits and spaces the attempts of one handler. A nil pointer means that there is no such limit.
type Policy struct {
	// Errors is the mode for ordinary errors.
	Errors ErrorsMode
	// Timeout counts from the first selection of the handler for the cause, waits included.
	Timeout *time.Duration
	// Retries is how many times the function is called at most.
	Retries *int
	// Backoff is the delay after an ordinary error; by default, that of the operator: 60 seconds.
	Backoff *time.Duration
}

// Background says when a spawning handler runs, and how it is stopped. No duration is negative.
type Background struct {
	// Daemon is one call that goes on; otherwise the calls are the ticks of a timer.
	Daemon bool
	// InitialDelay is how long to wait for the first call, by the object as it is then; nil is not at all.
	InitialDelay func(body map[string]any) (time.Duration, error)
	// Interval is from the end of a tick to the next one; with Sharp, the ticks are on a grid from the start of the
	// last one. Without an interval, there is one tick, or one for each time of idling.
	Interval time.Duration
	Sharp    bool
	// Idle is how long nothing that matters must have changed before a tick.
	Idle time.Duration
	// Jitter is the share of the interval by which it is made longer at random, at most.
	Jitter float64
	// CancelBackoff is from the request to stop to the end of the context; CancelTimeout is from then until the handler
	// is abandoned, and zero is never.
	CancelBackoff, CancelTimeout time.Duration
	// CancelPolling is how often it is mentioned that the handler does not end; zero is the default.
	CancelPolling time.Duration
}

// Handler is one function of the user under one id, with all that says when and how it is called.
type Handler struct {
	// ID is the full id, as persisted: with the suffix of the field, if there is one.
	ID string
	// FormerIDs are the full ids under which former versions of the operator have stored the progress, the result and
	// the children of the handler.
	FormerIDs []string
	// Renamed are the former ids of all handlers of the kind, as results are read by the id of any handler.
	Renamed storages.Renamed
	// Root is the id of the registered handler that a sub-handler is a part of, however deep; empty for those that are
	// registered themselves.
	Root string
	// Family is the group of verbs.
	Family Family
	// Reason is the only reason that a changing handler is for; empty for those of any reason (field, resume).
	Reason cause.Reason
	// Initial demands that the object was there when the operator started: the resume handlers.
	Initial bool
	// EvenIfDeleted lets a resume handler join a deletion. Kopf: deleted=True.
	EvenIfDeleted bool
	// Optional is for delete handlers, daemons and timers that demand no finalizer. Kopf: optional=True, of the former.
	Optional bool
	// HoldOnFailure is for delete handlers whose permanent failure keeps the finalizer.
	HoldOnFailure bool
	// NeedsChange demands that the value of the field, if there is one, differs between old and new: field and update
	// handlers, and their sub-handlers.
	NeedsChange bool
	// Field restricts the view of the handler to one field; nil is the whole object.
	Field diff.Path
	// Value is what the field must be like, or, for updates, must have been like; nil demands that it is there. Kopf:
	// value.
	Value Pattern
	// From and To are what the field must have been and must be like; they say nothing on whether the object is of
	// interest. Kopf: old, new.
	From, To Pattern
	// Operations are those of the requests that an admitting handler is for; none is all. Kopf: operations.
	Operations []string
	// Mutating is for admitting handlers that may change the object: they are asked about a deletion only if they are
	// for nothing else.
	Mutating bool
	// Subresource is that of the requests that an admitting handler is for; "*" is any, the main one included.
	Subresource string
	// SideEffects tells that an admitting handler changes something elsewhere, though not for a dry run. Kopf:
	// side_effects.
	SideEffects bool
	// IgnoreFailures lets requests pass while an admitting handler cannot be asked. Kopf: ignore_failures.
	IgnoreFailures bool
	// Persistent has requests sent to an admitting handler while the operator does not run, too. Kopf: persistent.
	Persistent bool
	// ReadsText is for watching and indexing handlers whose functions decode the text of the object by themselves:
	// for those, nothing is decoded before they ask. So it is for admitting handlers that are not Mutating; the causes
	// of all of these have no Old, New and Diff, as functions take from the request what they need.
	ReadsText bool
	// Type is the Go type into which the function of a watching or indexing handler that ReadsText decodes the object:
	// a struct. Nil is not known.
	Type reflect.Type
	// Sparing is for an admitting handler that does ahead of time what the controllers of the operator would do anyway:
	// it is for those resources alone that they can handle, and nobody waits for it for long.
	Sparing bool
	// Labels are what the filters demand of the labels, as far as a selector can say it, so that an API server may ask
	// for less; nil is nothing. It is the filters that decide.
	Labels labels.Selector
	// Requires is what else they demand, and the field, as far as it can be said: for the same reason.
	Requires []requirements.Requirement
	// Redacted are the paths of values of which only digests are remembered: for all handlers of the kind, as they
	// share its memory.
	Redacted []diff.Path
	// Observe is called for each attempt; it can be nil.
	Observe Observer
	// Reserved are the types of conditions that nobody but the engine sets on the objects of the kind.
	Reserved []string
	// Background says when a spawning handler runs.
	Background *Background
	// Index is what an indexing handler does; it has no Call.
	Index *Index
	// Act is the function of an acting handler, which has no Call: what it returns is the result of the handler, unless
	// it is nil. The call has a cause with the activity as its reason, and no object.
	Act func(ctx context.Context, call *Invocation) (result any, err error)
	// Owned is the owning handler, itself or that which has the kind watched that a tending one is told of. A tending
	// one without Call is told nothing, but its objects may wait for children, which are repaired.
	Owned *Handler
	// Whole is for an owning handler by which handlers may wait for any object of the kind, not only for children.
	Whole bool
	// Wants tells whether a tending handler is to be told of a child, which is shared; nil is of all.
	Wants func(ctx context.Context, child map[string]any) (bool, error)
	// Activity is the name of the activity that an acting handler is for; Often is for one that comes so often that its
	// successes are not worth a line in the log.
	Activity string
	Often    bool
	// RecheckOn are what the filters look at beside the object: after their changes, all objects have another pass.
	RecheckOn []Notifier
	// Filters must all agree; they are asked in order.
	Filters []Filter
	// Matches is asked after the filters, and needs more of the call than its cause, such as the request for admission;
	// nil is none. Its words are those after the ones of the filters.
	Matches func(ctx context.Context, call *Invocation) (bool, error)
	// Words say what the filters and the patterns of the field demand.
	Words requirements.Words
	// After are the sub-handlers, by their own ids, that must have succeeded before a sub-handler is called;
	// AfterFinished are those that must be finished, in spite of failures.
	After, AfterFinished []string
	// Policy limits and spaces the attempts.
	Policy Policy
	// Call is the function.
	Call Func
	// Function identifies the function: the same one under the same id is called once for a cause. It is comparable:
	// not the function itself. Closures of one function literal have the same Function.
	Function any
	// Instance tells closures of one function literal apart. It is comparable; nil is equal to nil.
	Instance any
	// Location is file:line of the registration, for messages.
	Location string
}

// Holds tells whether objects that the handler matches must be held on their deletion, as long as it is not done with
// them.
func (h *Handler) Holds() bool {
	return !h.Optional && (h.Family == Spawning || h.Family == Changing && h.Reason == cause.Delete)
}

// HasResult is true if the handler can have a result under its id.
func (h *Handler) HasResult() bool { return h.Stores() || h.Family == Watching || h.Family == Tending }

// Stores reports whether the handler stores anything under its id: progress, a result or a set of children.
func (h *Handler) Stores() bool { return h.Family == Changing || h.Family == Spawning }

// SeesDisappearance reports whether the handler is called for objects that disappear without our finalizer.
func (h *Handler) SeesDisappearance() bool {
	return h.Family == Changing && h.Reason == cause.Delete && h.Optional
}

// Leaves tells whether the object has been of interest to the handler for its field, and is not any more when the
// change is handled.
func (h *Handler) Leaves(c *cause.Cause) bool {
	if h.Field == nil || h.Family != Changing || h.fieldIn(c.New) {
		return false
	}
	return h.fieldIn(c.Old)
}

// View is what a handler sees of a cause: the whole, or its field alone.
func (h *Handler) View(c *cause.Cause) (before, after any, changes diff.Diff) {
	if c.Old != nil {
		before = c.Old
	}
	if c.New != nil {
		after = c.New
	}
	if h.Field == nil {
		return before, after, c.Diff
	}
	changes = c.Diff.Reduce(h.Field, before, after)
	before, _ = diff.Resolve(before, h.Field)
	after, _ = diff.Resolve(after, h.Field)
	if len(c.Veiled) > 0 {
		changes = cause.Veil(changes, h.Field, c.Veiled)
	}
	return before, after, changes
}

// ErrorsByDefault is the mode of the handler's family: errors of event handlers and index functions are ignored.
func (h *Handler) ErrorsByDefault() ErrorsMode {
	if h.Family == Watching || h.Family == Indexing {
		return ErrorsIgnored
	}
	return ErrorsTemporary
}

// Label names the handler where each name is kept until the end of the process, as in metrics, profiles and names of
// spans. It has as many values as there are registrations, twice: how many sub-handlers there are, and under which ids,
// may be up to the object, so all of a registered handler, however deep, are "<id>/*".
func (h *Handler) Label() string {
	if h.Root != "" {
		return SubID(h.Root, "*")
	}
	return h.ID
}
