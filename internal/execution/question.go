package execution

import "time"

// Question makes the chain of a handler report whether it would call the function, instead of calling it. The zero
// value is not a question: the chain calls the function.
type Question int

// The questions.
const (
	// Interest: can the handler be called for this object at all, for any event?
	Interest Question = iota + 1
	// Deletion: must a finalizer keep the deleted object until the handler has been called?
	Deletion
	// Selection: is the handler called for this cause?
	Selection
	// Due: is the handler called for this cause now: neither finished nor asleep?
	Due
)

// Stop names the adapter that stopped an attempt, and the reason. The zero value means that no adapter did. It is a
// value and not a log line, so that code can explain why a handler was not called.
type Stop struct {
	// Adapter is the name of the adapter, as in the list of chains.
	Adapter string
	// Reason is the reason.
	Reason SkipReason
	// Until is when a sleeping handler is due.
	Until time.Time
	// Filter is the index of the handler's filter that returned false.
	Filter int
	// Expected and Found are the value that the handler requires and the value that the adapter found, if known:
	// reasons, values of a field, limits. They can be parts of the object: callers must not modify them.
	Expected, Found any
}

// SkipReason is a reason not to call a function.
type SkipReason string

// The reasons.
const (
	// OtherReason: the cause has another reason than the handler. Expected and Found are reasons of causes.
	OtherReason SkipReason = "other reason"
	// NotInitial: the object is new, or was handled earlier in this process, so it is not resumed.
	NotInitial SkipReason = "not initial"
	// BeingDeleted: the object is being deleted, and the handler does not resume such objects.
	BeingDeleted SkipReason = "being deleted"
	// FinalizerNotNeeded: the handler does not need the finalizer.
	FinalizerNotNeeded SkipReason = "not held"
	// Unchanged: the field has the same value as before, which is Found.
	Unchanged SkipReason = "field unchanged"
	// OtherChange: the field did not change from or to the expected value. Found is the value that does not match.
	OtherChange SkipReason = "other change of the field"
	// OtherValue: the field does not have the expected value, or is absent.
	OtherValue SkipReason = "other value of the field"
	// OtherRequest: the handler does not accept the admission request, because of its operation, its subresource or the
	// requested handler.
	OtherRequest SkipReason = "other request"
	// FilteredOut: a filter returned false.
	FilteredOut SkipReason = "filtered out"
	// Finished: the handler has succeeded or failed permanently.
	Finished SkipReason = "finished"
	// Asleep: the handler waits for its next attempt.
	Asleep SkipReason = "asleep"
	// DependencyUnfinished: the handler must run after others that are unfinished. Expected are their ids.
	DependencyUnfinished SkipReason = "awaiting others"
	// Blocked: the handler waits until the object changes.
	Blocked SkipReason = "blocked"
	// DependencyFailed: other handlers that had to succeed first have failed permanently. Expected are their ids.
	DependencyFailed SkipReason = "others have failed"
	// NotPicked: the handler is due, but the lifecycle picked others.
	NotPicked SkipReason = "not picked"
	// Exceeded: the handler has reached a limit of time or retries. Expected is the limit, Found is the present value.
	Exceeded SkipReason = "limit exceeded"
)

// Slot is a resource that an attempt occupies while it runs, such as a worker's slot. Adapters call Enter before the
// function, and Leave after it.
type Slot interface {
	Enter(a *Attempt)
	Leave(a *Attempt)
}
