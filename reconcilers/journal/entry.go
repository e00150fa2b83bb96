package journal

import (
	"slices"
	"time"
)

// Entry is one thing that has happened to an object, or that was decided about it: one of Event, Look, Attempt, Write
// and Hold.
type Entry struct {
	// At is when it happened, the last time if it did several times; then First is the first time, and Times counts.
	At    time.Time  `json:"at"`
	First *time.Time `json:"first,omitempty"`
	Times int        `json:"times,omitempty"`

	Event   *Event   `json:"event,omitempty"`
	Look    *Look    `json:"look,omitempty"`
	Attempt *Attempt `json:"attempt,omitempty"`
	Write   *Write   `json:"write,omitempty"`
	Hold    *Hold    `json:"hold,omitempty"`
}

// Event is what the watch has brought.
type Event struct {
	// Type is ADDED, MODIFIED, DELETED, or LISTED for an object of the first listing.
	Type string `json:"type"`
	// Version is the resourceVersion of the object, of the last such event.
	Version string `json:"resourceVersion"`
}

// Look is one look at the object: what has happened to it, and which handlers are for that.
type Look struct {
	// Reason is that of the cause: create, update, delete, resume, noop, free; or "event" for handlers of raw events,
	// with the Type, and "background" for daemons and timers.
	Reason string `json:"reason"`
	Type   string `json:"type,omitempty"`
	// Initial is true if this process has not handled the object to the end yet, which was there before it.
	Initial bool `json:"initial,omitempty"`
	// Changed are the paths that differ from what was handled last, of updates; More are how many were left out.
	Changed []string `json:"changed,omitempty"`
	More    int      `json:"more,omitempty"`
	// Dropped says which former change was not finished, and is not gone on with.
	Dropped string `json:"dropped,omitempty"`
	// Unnoticed says which later state of the object is not noticed, and what helps.
	Unnoticed string `json:"unnoticed,omitempty"`
	// Verdicts are one for each handler that was asked, in the order of registration.
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Verdict is what was decided about one handler.
type Verdict struct {
	Handler string `json:"handler"`
	// On is what the handler is for: create, update, delete, resume, field, event, daemon, timer.
	On string `json:"on,omitempty"`
	// By is the adapter that said no, Why its reason, as package execution names it; both are empty of a handler that
	// was called.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Expected and Found are what the handler demands, and what there was, in short.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	// Field is the path of both, if they are of one.
	Field string `json:"field,omitempty"`
	// Until is when a handler that waits is due.
	Until *time.Time `json:"until,omitempty"`
}

// Attempt is one call of a handler.
type Attempt struct {
	Handler string `json:"handler"`
	// On is what the handler is for, as in a Verdict.
	On string `json:"on,omitempty"`
	// Number counts the attempts for the cause, from 1.
	Number int `json:"number"`
	// Outcome is what came of it: [Succeeded] or one of the others.
	Outcome string `json:"outcome"`
	// Error is the text of its error, shortened; or why there is none, though there was an error.
	Error string `json:"error,omitempty"`
	// Next is when it is called again.
	Next *time.Time `json:"next,omitempty"`
	// Took is how long the call took, of its last time, in seconds.
	Took float64 `json:"seconds"`
}

// Write is what was sent to the API server.
type Write struct {
	// By says for whom it was written: empty for all that a look has led to, "event handlers", or the id of a handler.
	By string `json:"by,omitempty"`
	// What are the places, without values.
	What []string `json:"what,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
}

// Hold is why nothing is done for the object at the moment, whatever its handlers say.
type Hold struct {
	// Why is one of the constants that begin with Held.
	Why string `json:"why"`
	// Error is the error behind it.
	Error string `json:"error,omitempty"`
	// Until is when it is tried again; nil is with the next event.
	Until *time.Time `json:"until,omitempty"`
}

// The outcomes of attempts, and the reasons of holds.
const (
	Succeeded   = "succeeded"
	Ignored     = "failed; its errors are ignored"
	Retried     = "failed; retrying"
	Failed      = "failed permanently"
	Waiting     = "waiting"
	Blocked     = "cannot be called with the object"
	Interrupted = "interrupted"

	HeldBlocked = "blocked until the object changes"
	HeldError   = "an error of the framework"
	HeldFailure = "the permanent failure of its deletion"
)

// repeats tells whether the other one says the same as this one, but for times and numbers.
func (e *Entry) repeats(other *Entry) bool {
	switch {
	case e.Event != nil && other.Event != nil:
		return e.Event.Type == other.Event.Type
	case e.Look != nil && other.Look != nil:
		return e.Look.repeats(other.Look)
	case e.Attempt != nil && other.Attempt != nil:
		a, b := e.Attempt, other.Attempt
		return a.Handler == b.Handler && a.On == b.On && a.Outcome == b.Outcome && a.Error == b.Error
	case e.Write != nil && other.Write != nil:
		return e.Write.repeats(other.Write)
	case e.Hold != nil && other.Hold != nil:
		return e.Hold.Why == other.Hold.Why && e.Hold.Error == other.Hold.Error
	default:
		return false
	}
}

func (l *Look) repeats(other *Look) bool {
	return l.Reason == other.Reason && l.Type == other.Type && l.Initial == other.Initial && l.More == other.More &&
		l.Dropped == other.Dropped && l.Unnoticed == other.Unnoticed && slices.Equal(l.Changed, other.Changed) &&
		slices.EqualFunc(l.Verdicts, other.Verdicts, Verdict.repeats)
}

func (w *Write) repeats(other *Write) bool {
	return w.By == other.By && w.Error == other.Error && slices.Equal(w.What, other.What)
}

func (v Verdict) repeats(other Verdict) bool {
	v.Until, other.Until = nil, nil
	return v == other
}
