package handlers

import (
	"context"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// ErrorsMode decides how an ordinary error is handled: one that does not declare itself temporary or permanent.
type ErrorsMode int

// The modes. Kopf spells their names in capitals, such as ErrorsMode.TEMPORARY.
const (
	// ErrorsDefault is the default of the handler's family: see ErrorsByDefault.
	ErrorsDefault ErrorsMode = iota
	// ErrorsTemporary retries after the backoff.
	ErrorsTemporary
	// ErrorsPermanent fails the handler permanently.
	ErrorsPermanent
	// ErrorsIgnored counts as a success without a result.
	ErrorsIgnored
)

// Policy limits the attempts of one handler and sets the delays between them. A nil pointer means that the value is not
// set.
type Policy struct {
	// Errors is the mode for ordinary errors.
	Errors ErrorsMode
	// Timeout counts from when the handler is first selected for the cause, and includes the waits between attempts.
	Timeout *time.Duration
	// Retries is the maximum number of calls.
	Retries *int
	// Backoff is the delay after an ordinary error; nil means the operator's default, which is 60 seconds unless set.
	Backoff *time.Duration
}

// BackgroundOptions configures when a background handler runs, and how it is stopped. Durations are not negative.
type BackgroundOptions struct {
	// Daemon is true for one long call. Otherwise, the calls are the ticks of a timer.
	Daemon bool
	// InitialDelay computes the delay before the first call from the object at that time; nil means no delay.
	InitialDelay func(body map[string]any) (time.Duration, error)
	// Interval is the time from the end of a tick to the next one. With Sharp, it counts from the start of the tick,
	// and a long tick skips the ticks that are missed. Without an interval, the timer ticks once; with Idle, it ticks
	// again after each change of the object.
	Interval time.Duration
	Sharp    bool
	// Idle is how long the object must be unchanged before a tick. Only changes of the essence count.
	Idle time.Duration
	// Jitter is the largest fraction of the interval that is added to it at random.
	Jitter float64
	// CancelBackoff is the time from the request to stop until the context is cancelled. CancelTimeout is the time from
	// the cancellation until the handler is abandoned; zero means never.
	CancelBackoff, CancelTimeout time.Duration
	// CancelPolling is the interval of log lines about a handler that does not stop; zero means the default.
	CancelPolling time.Duration
}

// Handler describes one function of the user under one id: when it is called, and how.
type Handler struct {
	// ID is the full id, as persisted. It includes the suffix of the field, if there is one.
	ID string
	// FormerIDs are the full ids under which former versions of the operator stored the progress, the result and the
	// children of the handler.
	FormerIDs []string
	// KindFormerIDs has the former ids of all handlers of the kind, as a handler can read the results of any other.
	KindFormerIDs storages.Renamed
	// Root is the id of the registered handler above a sub-handler of any depth; empty for registered handlers.
	Root string
	// Family determines when the handler is called: for changes, events, admission requests and so on.
	Family Family
	// Reason is the only reason for which a changing handler is called; empty for field and resume handlers.
	Reason cause.Reason
	// Initial is true for resume handlers: they are only called for objects that existed when the operator started.
	Initial bool
	// EvenIfDeleted lets a resume handler run for objects that are being deleted. Kopf: deleted=True.
	EvenIfDeleted bool
	// Optional is true for delete handlers, daemons and timers that do not need the finalizer. Kopf: optional=True, for
	// deletion only.
	Optional bool
	// HoldOnFailure is for delete handlers whose permanent failure keeps the finalizer.
	HoldOnFailure bool
	// NeedsChange is true for field and update handlers and their sub-handlers: their field, if there is one, must
	// differ between the old and the new state.
	NeedsChange bool
	// Field restricts the view of the handler to one field; nil means the whole object.
	Field diff.Path
	// Value is the pattern of the field's value. For updates, the former value can match instead. A nil pattern matches
	// any value that is present. Kopf: value.
	Value ValuePattern
	// From and To are the patterns of the former and the present value of the field. They restrict the changes, and not
	// the objects that the handler matches. Kopf: old, new.
	From, To ValuePattern
	// Operations are the operations that an admission handler accepts; empty means all. Kopf: operations.
	Operations []string
	// Mutating is true for admission handlers that can change the object. They are called for deletions only if DELETE
	// is their only operation.
	Mutating bool
	// Subresource is the subresource that an admission handler accepts; "*" means any, including the main resource.
	Subresource string
	// SideEffects is true if an admission handler changes other systems, except in a dry run. Kopf: side_effects.
	SideEffects bool
	// IgnoreFailures lets the API server accept requests when it cannot call an admission handler. Kopf:
	// ignore_failures.
	IgnoreFailures bool
	// Persistent keeps the webhook of an admission handler registered while the operator is down. Kopf: persistent.
	Persistent bool
	// ReadsText is true for event and index handlers whose functions decode the text of the object themselves: the
	// engine decodes the object only on request. For admission handlers, this holds until an earlier handler changes
	// the object. The causes of these handlers may lack Old, New and Diff; admission functions read the request
	// instead.
	ReadsText bool
	// DecodedType is the Go struct into which the function of an event or index handler with ReadsText decodes the
	// object; nil if it is not known.
	DecodedType reflect.Type
	// IsOptimization is true for an admission handler that only does some work of the controllers earlier. It is
	// registered only for resources that the controllers handle, and its requests have a short timeout.
	IsOptimization bool
	// Labels is the part of the filters that a label selector can express; nil if there is none. The API server can use
	// it to send fewer objects, but the filters decide.
	Labels labels.Selector
	// Requirements is the part of the other filters and of the field that requirements can express. The API server can
	// use it to send fewer admission requests.
	Requirements []Requirement
	// RedactedPaths has the paths of values that are stored as digests only. It is the same for all handlers of the
	// kind, as they share the stored configuration.
	RedactedPaths []diff.Path
	// Observe is called for each attempt; nil if there is no observer.
	Observe AttemptObserver
	// ReservedConditions are the types of the conditions that only the engine sets on the objects of the kind.
	ReservedConditions []string
	// Background configures a background handler.
	Background *BackgroundOptions
	// Index has the function and the target of an index handler, which does not have Call.
	Index *IndexWork
	// ActivityFunc is the function of an activity handler, which does not have Call. A result that is not nil becomes
	// the result of the handler. The reason of the cause is the name of the activity, and the cause has no object.
	ActivityFunc func(ctx context.Context, call *Invocation) (result any, err error)
	// ParentHandler is the Owning handler that watches the children: the handler itself, or the one that a Tending
	// handler refers to. A Tending handler without Call is not called for events, but handlers of its objects can wait
	// for children, and drift of the children is repaired.
	ParentHandler *Handler
	// AllowAnyObject lets handlers wait for any object of the kind that this Owning handler watches, not only for
	// children.
	AllowAnyObject bool
	// ChildFilter is the filter for the children of a Tending handler; nil accepts all. It gets a shared child, which
	// it must not modify.
	ChildFilter func(ctx context.Context, child map[string]any) (bool, error)
	// Activity is the name of the activity that an activity handler belongs to. Often is true if the activity runs so
	// frequently that its successes are not logged.
	Activity   string
	IsFrequent bool
	// RecheckOn are further sources that the filters read, besides the object. After each change of a source, all
	// objects get a pass.
	RecheckOn []Notifier
	// Filters must all return true; they are called in order.
	Filters []Filter
	// Matches is called after the filters, for criteria that need more of the call than its cause, such as the
	// admission request; nil accepts all. Its description in Words follows those of the filters.
	Matches func(ctx context.Context, call *Invocation) (bool, error)
	// FilterDescriptions describe the filters and the patterns of the field.
	FilterDescriptions Words
	// After are the ids, within the parent, of the sub-handlers that must succeed before this sub-handler is called.
	// AfterFinished are those that must finish, even if they fail.
	After, AfterFinished []string
	// Policy limits the attempts and sets the delays between them.
	Policy Policy
	// Call calls the function of the user. It is nil if Index or Act is set, and for handlers that are never called.
	Call Func
	// FunctionKey is a comparable key of the user's function. A function that is registered several times under one id
	// is called once for a cause. Closures of one function literal have the same Function.
	FunctionKey any
	// InstanceKey is a comparable key that distinguishes closures of one function literal.
	InstanceKey any
	// Location is the file:line of the registration, for messages.
	Location string
}

// NeedsFinalizer reports whether a matching object that is being deleted must be kept until the handler is finished.
func (h *Handler) NeedsFinalizer() bool {
	return !h.Optional && (h.Family == Background || h.Family == Changing && h.Reason == cause.Delete)
}

// HasResult reports whether the handler can have a result under its id.
func (h *Handler) HasResult() bool {
	return h.StoresUnderID() || h.Family == Watching || h.Family == Child
}

// StoresUnderID reports whether the handler stores anything under its id: progress, a result or a set of children.
func (h *Handler) StoresUnderID() bool { return h.Family == Changing || h.Family == Background }

// SeesDisappearance reports whether the handler is called for deleted objects that did not have the finalizer.
func (h *Handler) SeesDisappearance() bool {
	return h.Family == Changing && h.Reason == cause.Delete && h.Optional
}

// LeavesField reports whether the change takes the object out of the handler's field criterion: the old state matches,
// and the new one does not.
func (h *Handler) LeavesField(c *cause.Cause) bool {
	if h.Field == nil || h.Family != Changing || h.fieldIn(c.New) {
		return false
	}
	return h.fieldIn(c.Old)
}

// ViewCause returns the part of the cause that the handler sees: the whole object, or its field.
func (h *Handler) ViewCause(c *cause.Cause) (before, after any, changes diff.Diff) {
	before, after = cause.EssenceValue(c.Old), cause.EssenceValue(c.New)
	if h.Field == nil {
		return before, after, c.Diff
	}
	changes = c.Diff.Reduce(h.Field, before, after)
	before, _ = diff.ResolvePath(before, h.Field)
	after, _ = diff.ResolvePath(after, h.Field)
	// The reduced diff must not show values that are stored as digests only.
	if len(c.VeiledPaths) > 0 {
		changes = cause.VeilDiff(changes, h.Field, c.VeiledPaths)
	}
	return before, after, changes
}

// ErrorsByDefault returns the mode of the handler's family: ignored for event and index handlers, temporary for all
// others.
func (h *Handler) ErrorsByDefault() ErrorsMode {
	if h.Family == Watching || h.Family == Indexing {
		return ErrorsIgnored
	}
	return ErrorsTemporary
}

// MetricsLabel returns the name of the handler in metrics, profiles and span names. Names stay in memory until the
// process exits, and objects can determine the number and the ids of sub-handlers. So all sub-handlers of a registered
// handler, of any depth, share the label "<id>/*". There are at most two labels for each registered handler.
func (h *Handler) MetricsLabel() string {
	if h.Root != "" {
		return SubID(h.Root, "*")
	}
	return h.ID
}

// SharedLabels returns the label requirements that all of the handlers have in common, so that a watch can leave out
// objects without these labels. It returns nil if there are none.
func SharedLabels(all []*Handler) labels.Selector {
	var shared labels.Requirements
	first := true
	for _, one := range all {
		selector, looks := one.watchedLabels()
		switch {
		case !looks:
			continue
		// One handler without requirements needs all objects.
		case selector == nil:
			return nil
		}
		own, _ := selector.Requirements()
		if first {
			shared, first = own, false
		}
		// DeleteFunc works in place. Without the clone, it would modify the selector of the first handler.
		shared = slices.DeleteFunc(slices.Clone(shared), func(one labels.Requirement) bool {
			return !slices.ContainsFunc(own, one.Equal)
		})
	}
	if len(shared) == 0 {
		return nil
	}
	// Without a selector, the watch delivers more objects than necessary, but none is missed.
	if selector := labels.NewSelector().Add(shared...); len(selector.String()) <= maxSelectorLength {
		return selector
	}
	return nil
}
