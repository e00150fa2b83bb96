package execution

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// mostRetries is the maximum of the count: a record may have any number, and the count must not overflow.
const mostRetries = math.MaxInt32

// messageLimit is how many bytes of JSON of an error a record keeps: annotations have little room, and the API server
// would refuse records that are too large.
const messageLimit = 4096

// HandlerState is the state of one handler for one cause, between its attempts. Kopf: HandlerState.
type HandlerState struct {
	// ID is the handler's.
	ID string
	// Active is true if the handler is selected for the present cause.
	Active bool
	// Started is when it was first selected.
	Started time.Time
	// Stopped is when it finished, either way.
	Stopped *time.Time
	// Delayed is when its next attempt is due; nil is now.
	Delayed *time.Time
	// Purpose is the reason of the cause it belongs to; empty is any.
	Purpose string
	// Retries counts the attempts made.
	Retries int
	// Success and Failure exclude one another.
	Success, Failure bool
	// Message is the text of the last error.
	Message *string
	// Subrefs are the ids of all sub-handlers of its record, and of its outcomes, sorted.
	Subrefs []string
	// Succeeded are the sub-handlers of its record that succeeded and have no records of their own, without its own
	// id.
	Succeeded []string

	// Awaited is the child that it waits for, or waited for before the last error; nil is none. Until is when that is
	// to end; nil if it is a sub-handler that waits.
	Awaited *string
	Until   *time.Time

	// Trace is that of its attempts; empty is none.
	Trace progress.Trace

	// Postponed is true if the object has no room for the progress of a sub-handler that was not called yet. The
	// sub-handler is not called, and has no record.
	Postponed bool
	// Waiting is true if a sub-handler comes after others that are not finished. As long as it was not called, it has
	// no record: its time has not begun.
	Waiting bool
	// Terse is true if the object has no room for a longer error text of the sub-handler than the last one.
	Terse bool
	// Timed is true if the sub-handler has a timeout, so that its record must keep when it was first selected.
	Timed bool

	held    time.Time        // its first attempt waits until then, which is not recorded; zero is not at all
	loaded  *progress.Record // as the object has it; nil if there is none
	blocked bool
	awake   bool   // what it waits for has come, or nobody looks for it: it is due
	parts   *parts // its sub-handlers declared in this process; nil if there are none

	former  []string // ids of the sub-handler whose records it has taken over
	sub     bool     // it is a sub-handler: it counts in the state only by the outcome of its handler
	compact bool     // it needs no record of its own before an attempt, nor after a success
	named   bool     // it succeeded, and its handler's record says so in place of its own
	level   int      // number of its ancestors
	own     int      // length of its id without that of its handler
}

// Account sums up the former attempts of a handler. The zero value is none.
type Account struct {
	// Retries counts them.
	Retries int
	// Started is when the first one was due; zero is now.
	Started time.Time
	// Until is when the next attempt is due; zero or past is now.
	Until time.Time
	// Waited is what the handler waited for at last.
	Waited progress.Wait
	// Trace is that of the attempts; empty is none.
	Trace progress.Trace
	// Finished is true after a success, or a failure for good.
	Finished bool
	// Blocked is true if the handler waits until the object changes.
	Blocked bool
	// Awaits are the sub-handlers that must be finished before this one is called; Lost are those that must have
	// succeeded, and have failed for good.
	Awaits, Lost []string
}

func newHandlerState(id, purpose string, now time.Time) *HandlerState {
	return &HandlerState{ID: id, Purpose: purpose, Started: now}
}

func fromRecord(id string, r *progress.Record, now time.Time) *HandlerState {
	e := &HandlerState{ID: id, Started: now, Stopped: r.Stopped, Delayed: r.Delayed, Message: r.Message, loaded: r}
	e.Awaited, e.Until, e.Trace = r.Awaited, r.Until, r.Trace
	e.Subrefs, e.Succeeded = ownSubrefs(id, r.Subrefs), distinct(r.Succeeded)
	if r.Started != nil {
		e.Started = *r.Started
	}
	if r.Purpose != nil {
		e.Purpose = *r.Purpose
	}
	if r.Retries != nil {
		e.Retries = int(min(*r.Retries, mostRetries))
	}
	e.Success = r.Success != nil && *r.Success
	e.Failure = r.Failure != nil && *r.Failure
	return e
}

// ownSubrefs gives the listed ids that can be sub-handlers of the handler, each once. To purge others would remove the
// progress of other handlers.
func ownSubrefs(id string, listed []string) []string {
	own := slices.DeleteFunc(slices.Clone(listed), func(sub string) bool { return !strings.HasPrefix(sub, id+"/") })
	if len(own) == 0 {
		return nil
	}
	return distinct(own)
}

// Counts is true for a handler that the cause waits for: one that is selected, and no part of another one.
func (e *HandlerState) Counts() bool { return e.Active && !e.sub }

// Blocked is true if the next attempt waits until the object changes.
func (e *HandlerState) Blocked() bool { return e.blocked }

// Finished is true after a success or a failure.
func (e *HandlerState) Finished() bool { return e.Success || e.Failure }

// Awaits is true if the handler sleeps until a child is as it wants it, or a sub-handler of it does.
func (e *HandlerState) Awaits() bool {
	return e.Awaited != nil && !e.Finished() && (e.Until == nil || e.Message == nil)
}

// Hold delays the first attempt of a handler that has no record. That is not persisted.
func (e *HandlerState) Hold(until time.Time) {
	if e.Retries == 0 && e.loaded == nil && !e.Finished() {
		e.held = until
	}
}

// delay gives the time until the next attempt is due.
func (e *HandlerState) delay(now time.Time) time.Duration {
	if !e.held.IsZero() {
		return max(0, e.held.Sub(now))
	}
	if e.Delayed == nil || e.awake {
		return 0
	}
	return max(0, e.Delayed.Sub(now))
}

// repurpose moves the handler to another cause. It keeps start, retries and delay, and clears success and failure, as
// the handler was finished for its former purpose only.
func (e *HandlerState) repurpose(purpose string) {
	if e.Purpose == purpose {
		return
	}
	if e.Purpose != "" {
		e.Success, e.Failure, e.Stopped, e.Succeeded, e.Trace = false, false, nil, nil, ""
	}
	e.Purpose, e.Until = purpose, nil
}

func (e *HandlerState) conclude(o Outcome, kopf bool, now time.Time) {
	room := e.messageLimit() // which may be that of the last message
	e.held = time.Time{}
	if e.awake = false; o.Awaited.Child == "" {
		e.Retries = min(e.Retries+1, mostRetries)
	}
	e.Success = o.Final && o.Err == nil
	e.Failure = o.Final && o.Err != nil
	e.Delayed, e.Message = nil, nil
	if e.Trace = o.Trace; e.Finished() {
		e.Trace = "" // there is no attempt that would join it
	}
	if e.Finished() && e.Stopped == nil {
		e.Stopped = &now
	}
	if o.Delay != nil {
		until := now.Add(*o.Delay)
		e.Delayed = &until
	}
	if (o.Awaited.Child != "" || e.Awaited != nil) && e.await(o, now) {
		return
	}
	if o.Err != nil {
		text := asciijson.Cut(o.Text(kopf), room)
		e.Message = &text
	}
	e.Subrefs = union(e.Subrefs, o.Subrefs)
}

func (e *HandlerState) messageLimit() int {
	switch {
	case !e.sub:
		return messageLimit
	case !e.Terse:
		return partMessageLimit
	case e.Message == nil:
		return 0
	default:
		return max(0, len(asciijson.AppendString(nil, *e.Message))-len(`"\u2026"`))
	}
}

func union(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	return distinct(slices.Concat(a, b))
}

// Record gives the state as it is stored.
func (e *HandlerState) Record() progress.Record {
	started, retries, success, failure, purpose := e.Started, int64(e.Retries), e.Success, e.Failure, e.Purpose
	r := progress.Record{Started: &started, Stopped: e.Stopped, Delayed: e.Delayed, Retries: &retries,
		Success: &success, Failure: &failure, Message: e.Message, Subrefs: e.references(), Succeeded: e.done(),
		Awaited: e.Awaited, Until: e.Until, Trace: e.Trace}
	if purpose != "" {
		r.Purpose = &purpose
	}
	return r
}

// references gives the sub-handlers that have records, which must be purged together with its own.
func (e *HandlerState) references() []string {
	if e.parts == nil {
		return e.Subrefs
	}
	var ids []string
	for _, id := range e.Subrefs {
		if e.parts.all[id] == nil {
			ids = append(ids, id)
		}
	}
	for id, met := range e.parts.all {
		if met.Recorded() {
			ids = append(ids, id)
		}
	}
	return distinct(ids)
}

// done gives the sub-handlers that need no records because they succeeded. Once the handler has failed, one of them is
// enough to tell that there are any.
func (e *HandlerState) done() []string {
	all := e.allDone()
	switch {
	case e.Success:
		return nil
	case e.Failure && len(all) > 0:
		return all[:1]
	default:
		return all
	}
}

func (e *HandlerState) allDone() []string {
	if e.parts == nil {
		return e.Succeeded
	}
	ids := slices.Clone(e.Succeeded)
	for _, met := range e.parts.direct {
		if met.named {
			ids = append(ids, e.relative(met.ID))
		}
	}
	return distinct(ids)
}

// changed tells whether the record differs from the stored one, or that is in a foreign format.
func (e *HandlerState) changed() bool {
	return e.loaded == nil || e.loaded.Foreign() || !e.loaded.Equal(e.Record())
}

// continues tells whether the record is the stored one, or the one to be stored; nil is none. Texts do not count, as
// they may have been cut.
func (e *HandlerState) continues(found *progress.Record) bool {
	if found == nil {
		return e.loaded == nil
	}
	is := func(other progress.Record) bool {
		other.Message = found.Message
		return found.Equal(other)
	}
	return e.loaded != nil && is(*e.loaded) || is(e.Record())
}

// Recorded tells whether the handler has, or must get, a record of its own.
func (e *HandlerState) Recorded() bool {
	switch fresh := e.Retries == 0 && e.loaded == nil; {
	case !e.sub:
		return e.held.IsZero() || !fresh
	case e.named, (e.Postponed || e.Waiting) && fresh:
		return false
	default:
		return !e.compact || !fresh || e.Timed || e.parts != nil || e.Awaited != nil
	}
}

// Account gives the part of the state that adapters need.
func (e *HandlerState) Account() Account {
	account := Account{
		Retries: e.Retries, Started: e.Started, Trace: e.Trace, Finished: e.Finished(), Blocked: e.blocked,
	}
	if !e.held.IsZero() {
		account.Until = e.held
	} else if e.Delayed != nil && !e.awake {
		account.Until = *e.Delayed
	}
	if e.Awaited != nil && e.Until != nil {
		account.Waited = progress.Wait{Child: *e.Awaited, Until: *e.Until}
	}
	if account.Started.IsZero() { // the record says so: to an account, the zero time would be no start
		account.Started = account.Started.Add(1)
	}
	return account
}

// Waits gives the reason for which the handler must not be called now; the zero value if there is none.
func (c Account) Waits(now time.Time) Stop {
	switch {
	case c.Finished:
		return Stop{Why: Finished}
	case len(c.Awaits) > 0:
		return Stop{Why: Awaiting, Expected: c.Awaits}
	case c.Blocked:
		return Stop{Why: Blocked}
	case c.Until.After(now):
		return Stop{Why: Asleep, Until: c.Until}
	default:
		return Stop{}
	}
}

// Runtime gives the time since the first attempt was due, waits included; zero for a start in the future, which a
// wrong clock has set.
func (c Account) Runtime(now time.Time) time.Duration {
	if c.Started.IsZero() {
		return 0
	}
	return max(0, now.Sub(c.Started))
}
