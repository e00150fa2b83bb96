package execution

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// maxRetries caps the counter: a record can contain any number, and the counter must not overflow.
const maxRetries = math.MaxInt32

// messageLimit is the number of JSON bytes of an error text that a record keeps: annotations have little room, and the
// API server refuses objects that are too large.
const messageLimit = 4096

// HandlerState is the state of one handler for one cause, between its attempts. Kopf: HandlerState.
type HandlerState struct {
	// ID is the id of the handler.
	ID string
	// Active is true if the handler is selected for the present cause.
	Active bool
	// Started is when the handler was first selected.
	Started time.Time
	// Stopped is when the handler succeeded or failed.
	Stopped *time.Time
	// Delayed is when the next attempt is due; nil means now.
	Delayed *time.Time
	// Purpose is the reason of the cause that the state belongs to; empty means any.
	Purpose string
	// Retries counts the attempts made.
	Retries int
	// Success and Failure exclude one another, except in records that other programs wrote.
	Success, Failure bool
	// Message is the text of the last error.
	Message *string
	// Subrefs are the ids of all sub-handlers in the record and the outcomes, sorted.
	Subrefs []string
	// Succeeded are the sub-handlers in the record that succeeded and do not have their own records. The ids are
	// relative to the handler.
	Succeeded []string

	// Awaited is the child that the handler waits for, or waited for before the last error; nil if there is none. Until
	// is the end of the wait; nil if a sub-handler waits.
	Awaited *string
	Until   *time.Time

	// Trace is the trace context of the attempts; empty if there is none.
	Trace progress.Trace

	// Postponed is true if the object does not have room for the progress of a new sub-handler. The sub-handler is not
	// called, and does not have a record.
	Postponed bool
	// Waiting is true if the sub-handler must run after others that are unfinished. Until its first call, it does not
	// have a record, and its timeout does not run.
	Waiting bool
	// IsMessageCapped is true if the object does not have room for an error text longer than the present one.
	IsMessageCapped bool
	// HasTimeout is true if the sub-handler has a timeout: its record must keep the time of the first selection.
	HasTimeout bool

	firstAttemptAt time.Time        // the start of the first attempt, not recorded; zero if it is not delayed
	storedRecord   *progress.Record // the record on the object; nil if there is none
	blocked        bool             // the next attempt waits for a change of the object
	awake          bool             // the wait has ended, or must be checked again: the handler is due
	declaredSubs   *declaredSubs    // the sub-handlers declared in this process; nil if there are none

	formerIDs        []string // former ids of the sub-handler: their records are removed with the next store
	isSub            bool     // a sub-handler: the state counts it through its parent only
	compact          bool     // the sub-handler needs a record only between attempts
	isNamedByParent  bool     // the sub-handler succeeded, and the parent's record names it
	level            int      // the number of ancestors
	relativeIDLength int      // the length of the id relative to the parent
}

// Account sums up the former attempts of a handler. The zero value means that there were none.
type Account struct {
	// Retries is the number of attempts.
	Retries int
	// Started is when the first one was due; zero means now.
	Started time.Time
	// Until is when the next attempt is due; zero or past means now.
	Until time.Time
	// LastWait is the last child that the handler waited for.
	LastWait progress.Wait
	// Trace is the trace context of the attempts; empty if there is none.
	Trace progress.Trace
	// Finished is true after a success or a permanent failure.
	Finished bool
	// Blocked is true if the handler waits until the object changes.
	Blocked bool
	// UnfinishedDependencies are the sub-handlers that must finish before this one is called. Lost are those that had
	// to succeed, and have failed permanently.
	UnfinishedDependencies, FailedDependencies []string
}

// newHandlerState returns the state of a handler without a record.
func newHandlerState(id, purpose string, now time.Time) *HandlerState {
	return &HandlerState{ID: id, Purpose: purpose, Started: now}
}

// fromRecord returns the state of a handler with a record. Other programs can write any subset of the fields, so each
// has a default.
func fromRecord(id string, r *progress.Record, now time.Time) *HandlerState {
	e := &HandlerState{ID: id, Started: now, Stopped: r.Stopped, Delayed: r.Delayed, Message: r.Message,
		storedRecord: r}
	e.Awaited, e.Until, e.Trace = r.Awaited, r.Until, r.Trace
	e.Subrefs, e.Succeeded = ownSubrefs(id, r.Subrefs), sortedDistinct(r.Succeeded)
	if r.Started != nil {
		e.Started = *r.Started
	}
	if r.Purpose != nil {
		e.Purpose = *r.Purpose
	}
	if r.Retries != nil {
		e.Retries = int(min(*r.Retries, maxRetries))
	}
	e.Success = r.Success != nil && *r.Success
	e.Failure = r.Failure != nil && *r.Failure
	return e
}

// ownSubrefs returns the ids that can belong to sub-handlers of the handler, each once. Purging other ids would remove
// the progress of other handlers.
func ownSubrefs(id string, listed []string) []string {
	own := slices.DeleteFunc(slices.Clone(listed), func(sub string) bool { return !strings.HasPrefix(sub, id+"/") })
	if len(own) == 0 {
		return nil
	}
	return sortedDistinct(own)
}

// IsCounted reports whether the cause waits for the handler: it is selected and not a sub-handler.
func (e *HandlerState) IsCounted() bool { return e.Active && !e.isSub }

// IsBlocked reports whether the next attempt waits until the object changes.
func (e *HandlerState) IsBlocked() bool { return e.blocked }

// IsFinished reports whether the handler has succeeded or failed permanently.
func (e *HandlerState) IsFinished() bool { return e.Success || e.Failure }

// AwaitsChild reports whether the handler or one of its sub-handlers waits for a child. After an error during its own
// wait, the handler sleeps for its backoff instead.
func (e *HandlerState) AwaitsChild() bool {
	return e.Awaited != nil && !e.IsFinished() && (e.Until == nil || e.Message == nil)
}

// DelayFirstAttempt delays the first attempt of a handler without a record. The delay is not persisted.
func (e *HandlerState) DelayFirstAttempt(until time.Time) {
	if e.Retries == 0 && e.storedRecord == nil && !e.IsFinished() {
		e.firstAttemptAt = until
	}
}

// NextDelay returns the time until the next attempt is due.
func (e *HandlerState) NextDelay(now time.Time) time.Duration {
	if !e.firstAttemptAt.IsZero() {
		return max(0, e.firstAttemptAt.Sub(now))
	}
	if e.Delayed == nil || e.awake {
		return 0
	}
	return max(0, e.Delayed.Sub(now))
}

// moveToPurpose moves the state to another cause. It keeps start, retries and delay, as Kopf does. Unlike Kopf, it
// clears success and failure: the handler was finished for its former purpose only.
func (e *HandlerState) moveToPurpose(purpose string) {
	if e.Purpose == purpose {
		return
	}
	// A record without a purpose belongs to any cause: its success counts.
	if e.Purpose != "" {
		e.Success, e.Failure, e.Stopped, e.Succeeded, e.Trace = false, false, nil, nil, ""
	}
	e.Purpose, e.Until = purpose, nil
}

// applyOutcome applies the outcome of an attempt.
func (e *HandlerState) applyOutcome(o Outcome, kopf bool, now time.Time) {
	room := e.messageLimit() // before the message is replaced: a terse one must not grow
	e.firstAttemptAt = time.Time{}
	if e.awake = false; o.Wait.Child == "" {
		e.Retries = min(e.Retries+1, maxRetries)
	}
	e.Success = o.Final && o.Err == nil
	e.Failure = o.Final && o.Err != nil
	e.Delayed, e.Message = nil, nil
	if e.Trace = o.Trace; e.IsFinished() {
		e.Trace = "" // the next attempt belongs to another change
	}
	if e.IsFinished() && e.Stopped == nil {
		e.Stopped = &now
	}
	if o.Delay != nil {
		until := now.Add(*o.Delay)
		e.Delayed = &until
	}
	// A wait of the handler itself is recorded without a message.
	if (o.Wait.Child != "" || e.Awaited != nil) && e.applyWait(o, now) {
		return
	}
	if o.Err != nil {
		text := asciijson.CutText(o.RecordText(kopf), room)
		e.Message = &text
	}
	e.Subrefs = mergeIDs(e.Subrefs, o.Subrefs)
}

// messageLimit returns the number of JSON bytes that the next error text can have.
func (e *HandlerState) messageLimit() int {
	switch {
	case !e.isSub:
		return messageLimit
	case !e.IsMessageCapped:
		return subMessageLimit
	case e.Message == nil:
		return 0
	default:
		// A new text must not be longer than the present one, including the ellipsis that Cut appends.
		return max(0, len(asciijson.AppendString(nil, *e.Message))-len(`"\u2026"`))
	}
}

// mergeIDs returns the sorted ids of both.
func mergeIDs(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	return sortedDistinct(slices.Concat(a, b))
}

// AsRecord returns the state in its stored form.
func (e *HandlerState) AsRecord() progress.Record {
	started, retries, success, failure, purpose := e.Started, int64(e.Retries), e.Success, e.Failure, e.Purpose
	r := progress.Record{Started: &started, Stopped: e.Stopped, Delayed: e.Delayed, Retries: &retries,
		Success: &success, Failure: &failure, Message: e.Message, Subrefs: e.recordedSubrefs(),
		Succeeded: e.successesToRecord(),
		Awaited:   e.Awaited, Until: e.Until, Trace: e.Trace}
	if purpose != "" {
		r.Purpose = &purpose
	}
	return r
}

// recordedSubrefs returns the sub-handlers that have records. The record lists them, so that they are purged with it.
func (e *HandlerState) recordedSubrefs() []string {
	if e.declaredSubs == nil {
		return e.Subrefs
	}
	// Listed sub-handlers that were not declared in this process keep their references: they can still have records.
	var ids []string
	for _, id := range e.Subrefs {
		if e.declaredSubs.byID[id] == nil {
			ids = append(ids, id)
		}
	}
	for id, met := range e.declaredSubs.byID {
		if met.NeedsRecord() {
			ids = append(ids, id)
		}
	}
	return sortedDistinct(ids)
}

// successesToRecord returns the sub-handlers that succeeded and do not need their own records. A finished handler does
// not need the list; after a failure, one entry is kept as a sign that a sub-handler succeeded.
func (e *HandlerState) successesToRecord() []string {
	all := e.allSuccesses()
	switch {
	case e.Success:
		return nil
	case e.Failure && len(all) > 0:
		return all[:1]
	default:
		return all
	}
}

// allSuccesses returns the relative ids of all such sub-handlers, from the record and from this process.
func (e *HandlerState) allSuccesses() []string {
	if e.declaredSubs == nil {
		return e.Succeeded
	}
	ids := slices.Clone(e.Succeeded)
	for _, met := range e.declaredSubs.directSubs {
		if met.isNamedByParent {
			ids = append(ids, e.relativeID(met.ID))
		}
	}
	return sortedDistinct(ids)
}

// hasChanged reports whether the record differs from the stored one, or the stored one has a foreign format.
func (e *HandlerState) hasChanged() bool {
	return e.storedRecord == nil || e.storedRecord.IsForeign() || !e.storedRecord.Equal(e.AsRecord())
}

// continuesRecord reports whether the found record, nil if there is none, is the loaded one or the one to be stored. It
// ignores the messages, as they can have been cut.
func (e *HandlerState) continuesRecord(found *progress.Record) bool {
	if found == nil {
		return e.storedRecord == nil
	}
	is := func(other progress.Record) bool {
		other.Message = found.Message
		return found.Equal(other)
	}
	return e.storedRecord != nil && is(*e.storedRecord) || is(e.AsRecord())
}

// NeedsRecord reports whether the handler has, or must get, its own record.
// A compact sub-handler only gets a record for facts that cannot be derived: attempts, a timeout, its own sub-handlers,
// or a wait.
func (e *HandlerState) NeedsRecord() bool {
	switch fresh := e.Retries == 0 && e.storedRecord == nil; {
	case !e.isSub:
		return e.firstAttemptAt.IsZero() || !fresh
	case e.isNamedByParent, (e.Postponed || e.Waiting) && fresh:
		return false
	default:
		return !e.compact || !fresh || e.HasTimeout || e.declaredSubs != nil || e.Awaited != nil
	}
}

// Account returns the part of the state that adapters need.
func (e *HandlerState) Account() Account {
	account := Account{
		Retries: e.Retries, Started: e.Started, Trace: e.Trace, Finished: e.IsFinished(), Blocked: e.blocked,
	}
	if !e.firstAttemptAt.IsZero() {
		account.Until = e.firstAttemptAt
	} else if e.Delayed != nil && !e.awake {
		account.Until = *e.Delayed
	}
	if e.Awaited != nil && e.Until != nil {
		account.LastWait = progress.Wait{Child: *e.Awaited, Until: *e.Until}
	}
	if account.Started.IsZero() { // from the record: in an account, the zero time would mean a missing start
		account.Started = account.Started.Add(1)
	}
	return account
}

// WaitReason returns the reason not to call the handler now; the zero value if it can be called.
func (c Account) WaitReason(now time.Time) Stop {
	switch {
	case c.Finished:
		return Stop{Reason: Finished}
	case len(c.UnfinishedDependencies) > 0:
		return Stop{Reason: DependencyUnfinished, Expected: c.UnfinishedDependencies}
	case c.Blocked:
		return Stop{Reason: Blocked}
	case c.Until.After(now):
		return Stop{Reason: Asleep, Until: c.Until}
	default:
		return Stop{}
	}
}

// RuntimeAt returns the time since the first attempt was due, waits included. It returns zero for a start in the
// future, caused by a wrong clock.
func (c Account) RuntimeAt(now time.Time) time.Duration {
	if c.Started.IsZero() {
		return 0
	}
	return max(0, now.Sub(c.Started))
}
