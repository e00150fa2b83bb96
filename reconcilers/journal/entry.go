package journal

import (
	"slices"
	"time"
)

// Entry is one recorded fact about an object. Exactly one of Event, Look, Attempt, Write and Hold is set.
type Entry struct {
	// At is the time of the entry. If it was repeated, At is the last time, First is the first time, and Times is the
	// number.
	At    time.Time  `json:"at"`
	First *time.Time `json:"first,omitempty"`
	Times int        `json:"times,omitempty"`

	Event      *EventEntry   `json:"event,omitempty"`
	Evaluation *Evaluation   `json:"look,omitempty"`
	Attempt    *AttemptEntry `json:"attempt,omitempty"`
	Write      *Write        `json:"write,omitempty"`
	Hold       *Hold         `json:"hold,omitempty"`
}

// EventEntry is an event of the watch.
type EventEntry struct {
	// Type is ADDED, MODIFIED, DELETED, or LISTED for an object of the first listing.
	Type string `json:"type"`
	// Version is the resourceVersion of the object in the last such event.
	Version string `json:"resourceVersion"`
}

// Evaluation is one pass over the object: the cause that it found, and its decisions about handlers.
type Evaluation struct {
	// Reason is that of the cause: create, update, delete, resume, noop, free; or "event" for handlers of raw events,
	// with their Type; or "background" for daemons and timers.
	Reason string `json:"reason"`
	Type   string `json:"type,omitempty"`
	// Initial is true for an object that existed before this process, until its handlers have finished.
	Initial bool `json:"initial,omitempty"`
	// ChangedPaths holds the paths that differ from the last-handled configuration, for updates; More is the number of
	// omitted paths.
	ChangedPaths     []string `json:"changed,omitempty"`
	OmittedPathCount int      `json:"more,omitempty"`
	// DroppedReason says which unfinished change is not continued.
	DroppedReason string `json:"dropped,omitempty"`
	// UnnoticedState says which later state of the object does not trigger handlers, and the remedy.
	UnnoticedState string `json:"unnoticed,omitempty"`
	// Verdicts holds one decision for each handler, in the order of registration.
	Verdicts []HandlerVerdict `json:"verdicts,omitempty"`
}

// HandlerVerdict is the decision about one handler.
type HandlerVerdict struct {
	Handler string `json:"handler"`
	// Purpose is the purpose of the handler: create, update, delete, resume, field, event, daemon, timer.
	Purpose string `json:"on,omitempty"`
	// Adapter is the adapter that stopped the attempt, and Why its reason, in the words of package execution. Both are
	// empty if the handler was called.
	Adapter string `json:"by,omitempty"`
	Reason  string `json:"why,omitempty"`
	// Expected and Found are the value that the handler requires and the actual one, shortened.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	// Field is the path of both values, if they belong to a field.
	Field string `json:"field,omitempty"`
	// Until is the time at which a waiting handler is due.
	Until *time.Time `json:"until,omitempty"`
}

// AttemptEntry is one call of a handler.
type AttemptEntry struct {
	Handler string `json:"handler"`
	// Purpose is the purpose of the handler, as in a Verdict.
	Purpose string `json:"on,omitempty"`
	// Number counts the attempts for the cause, from 1.
	Number int `json:"number"`
	// Outcome is one of the constants from [Succeeded] to Interrupted.
	Outcome string `json:"outcome"`
	// Error is the shortened text of its error, or a note that the text is withheld.
	Error string `json:"error,omitempty"`
	// Next is the time of the next call.
	Next *time.Time `json:"next,omitempty"`
	// IsFormer is true for a failure that the object has recorded: it was called before this process was started.
	IsFormer bool `json:"former,omitempty"`
	// Seconds is the duration of the call in seconds; for repeated entries, that of the last call.
	Seconds float64 `json:"seconds"`
}

// Write is one write to the API server.
type Write struct {
	// Origin is the origin of the write: empty for the results of a pass, "event handlers", or the id of a handler.
	Origin string `json:"by,omitempty"`
	// Paths holds the written paths, without values.
	Paths []string `json:"what,omitempty"`
	// Error says why the write failed.
	Error string `json:"error,omitempty"`
}

// Hold says why the object as a whole is not handled at the moment.
type Hold struct {
	// Reason is one of the constants that begin with Held.
	Reason string `json:"why"`
	// Error is the text of the error that caused it.
	Error string `json:"error,omitempty"`
	// Until is the time of the next attempt; nil waits for the next event.
	Until *time.Time `json:"until,omitempty"`
}

// The outcomes of attempts, and the reasons of holds. They are shown to users, and are part of the JSON output.
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
	HeldPaused  = "paused by its annotation"
)

// isRepetitionOf reports whether both entries say the same, apart from times and counters. Such entries are merged.
func (e *Entry) isRepetitionOf(other *Entry) bool {
	switch {
	case e.Event != nil && other.Event != nil:
		// Each event has another version, so only the type counts.
		return e.Event.Type == other.Event.Type
	case e.Evaluation != nil && other.Evaluation != nil:
		return e.Evaluation.isRepetitionOf(other.Evaluation)
	case e.Attempt != nil && other.Attempt != nil:
		// Number and times differ between attempts; the outcome and its error decide.
		a, b := e.Attempt, other.Attempt
		return a.Handler == b.Handler && a.Purpose == b.Purpose && a.Outcome == b.Outcome && a.Error == b.Error
	case e.Write != nil && other.Write != nil:
		return e.Write.isRepetitionOf(other.Write)
	case e.Hold != nil && other.Hold != nil:
		return e.Hold.Reason == other.Hold.Reason && e.Hold.Error == other.Hold.Error
	default:
		return false
	}
}

// isRepetitionOf reports whether both looks made the same decisions, apart from times.
func (l *Evaluation) isRepetitionOf(other *Evaluation) bool {
	return l.Reason == other.Reason && l.Type == other.Type && l.Initial == other.Initial &&
		l.OmittedPathCount == other.OmittedPathCount &&
		l.DroppedReason == other.DroppedReason && l.UnnoticedState == other.UnnoticedState &&
		slices.Equal(l.ChangedPaths, other.ChangedPaths) &&
		slices.EqualFunc(l.Verdicts, other.Verdicts, HandlerVerdict.isRepetitionOf)
}

// isRepetitionOf reports whether both writes have the same paths, origin and error.
func (w *Write) isRepetitionOf(other *Write) bool {
	return w.Origin == other.Origin && w.Error == other.Error && slices.Equal(w.Paths, other.Paths)
}

// isRepetitionOf reports whether both verdicts are equal, apart from the time at which the handler is due.
func (v HandlerVerdict) isRepetitionOf(other HandlerVerdict) bool {
	// Both verdicts are copies, so the recorded ones are not modified.
	v.Until, other.Until = nil, nil
	return v == other
}
