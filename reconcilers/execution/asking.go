package execution

import "time"

// Question asks the chain of a handler whether it would call the function, in place of a call. The zero value is no
// question: the chain calls the function.
type Question int

// The questions.
const (
	// Interest: would the handler ever be called for this object, whatever happened to it?
	Interest Question = iota + 1
	// Deletion: must a finalizer hold the deleted object until the handler has been called?
	Deletion
	// Selection: is the handler called for this cause?
	Selection
	// Due: is the handler called for this cause, and neither finished nor asleep?
	Due
)

// Stop names the adapter that has stopped an attempt, and the reason. The zero value means that none has. It is a
// value, not a log line, so that code can explain why a handler was not called.
type Stop struct {
	// By is the adapter, as the list of chains names it.
	By string
	// Why is the reason.
	Why Why
	// Until is when a handler that is asleep is due.
	Until time.Time
	// Filter is the place among the filters of the handler, from 0, of the one that said no.
	Filter int
	// Expected and Found are what the handler demands and what the adapter found, where they are known: reasons,
	// values of a field, limits. They may be parts of the object: callers must not modify them.
	Expected, Found any
}

// Why is a reason not to call a function.
type Why string

// The reasons.
const (
	// OtherReason: the cause has another reason than the handler. Expected and Found are reasons of causes.
	OtherReason Why = "other reason"
	// NotInitial: the object is not resumed, as it was handled before in this process, or is new.
	NotInitial Why = "not initial"
	// BeingDeleted: the object is being deleted, and the handler resumes no such objects.
	BeingDeleted Why = "being deleted"
	// NotHeld: the handler needs no finalizer.
	NotHeld Why = "not held"
	// Unchanged: the field has the same value as before, which is Found.
	Unchanged Why = "field unchanged"
	// OtherChange: the field did not change from or to the expected value. Found is the value that does not match.
	OtherChange Why = "other change of the field"
	// OtherValue: the field does not have the expected value, or is absent.
	OtherValue Why = "other value of the field"
	// OtherRequest: the request for admission is for other handlers, or of an operation or a subresource that the
	// handler is not for.
	OtherRequest Why = "other request"
	// FilteredOut: a filter returned false.
	FilteredOut Why = "filtered out"
	// Finished: the handler has succeeded, or has failed for good.
	Finished Why = "finished"
	// Asleep: the handler waits for its next attempt.
	Asleep Why = "asleep"
	// Awaiting: the handler comes after others that are not finished. Expected are their ids.
	Awaiting Why = "awaiting others"
	// Blocked: the handler waits until the object changes.
	Blocked Why = "blocked"
	// Missed: others have failed for good that the handler needs to have succeeded. Expected are their ids.
	Missed Why = "others have failed"
	// NotPicked: the handler is due, but the lifecycle has picked others.
	NotPicked Why = "not picked"
	// Exceeded: the handler has reached a limit of time or retries. Expected is the limit, Found is what was used.
	Exceeded Why = "limit exceeded"
)

// Place is a resource that an attempt occupies while it runs, such as a worker. Adapters call Enter before the
// function, and Leave after it.
type Place interface {
	Enter(a *Attempt)
	Leave(a *Attempt)
}
