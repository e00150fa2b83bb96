package execution

import "time"

// Question is what the chain of a handler can be asked in place of a call: "would you run?" The zero value is none, and
// the function is called.
type Question int

// The questions.
const (
	// Interest: would you ever be called for this object, whatever happened to it?
	Interest Question = iota + 1
	// Deletion: must the object be held on its deletion until you have been called for that?
	Deletion
	// Selection: are you for this cause?
	Selection
	// Due: are you for this cause, and neither finished nor asleep?
	Due
)

// Stop names the adapter that has stopped an attempt, and the reason. The zero value is none. It is a value, not a log
// line: whoever explains why a handler was not called reads it.
type Stop struct {
	// By is the adapter, as the list of chains names it.
	By string
	// Why is the reason.
	Why Why
	// Until is when a handler that is asleep is due.
	Until time.Time
	// Filter is the place among the filters of the handler, from 0, of the one that said no.
	Filter int
	// Expected and Found are what the handler demands and what there is, where that is known: reasons, values of a
	// field, limits. They may be parts of the object: nobody modifies them.
	Expected, Found any
}

// Why is a reason not to call a function.
type Why string

// The reasons.
const (
	// OtherReason: something else has happened than what the handler is for. Both are reasons of causes.
	OtherReason Why = "other reason"
	// NotInitial: the object was met before, or is new: it is not resumed.
	NotInitial Why = "not initial"
	// BeingDeleted: the object is being deleted, and the handler resumes no such objects.
	BeingDeleted Why = "being deleted"
	// NotHeld: the handler needs no finalizer.
	NotHeld Why = "not held"
	// Unchanged: the field has the value that it had. That is what was found.
	Unchanged Why = "field unchanged"
	// OtherChange: the field did not change from or to what it must. The value that does not fit is found.
	OtherChange Why = "other change of the field"
	// OtherValue: the value of the field is not as it must be, or there is none.
	OtherValue Why = "other value of the field"
	// FilteredOut: a filter said no.
	FilteredOut Why = "filtered out"
	// Finished: the handler has succeeded, or has failed for good.
	Finished Why = "finished"
	// Asleep: the handler waits for its next attempt.
	Asleep Why = "asleep"
	// Blocked: the handler waits until the object changes.
	Blocked Why = "blocked"
	// Exceeded: the handler has used up its time or its retries. The limit is expected, what was used is found.
	Exceeded Why = "limit exceeded"
)

// Place is what an attempt occupies while it runs, such as a worker that others wait for.
type Place interface {
	Enter(a *Attempt)
	Leave(a *Attempt)
}
