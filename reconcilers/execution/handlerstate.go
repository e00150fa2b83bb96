package execution

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// mostRetries is where counting ends: a record may say anything, and no number may become a negative one.
const mostRetries = math.MaxInt32

// messageLimit is how many bytes of JSON of an error are remembered: annotations have little room, and an object whose
// records are refused for their size could not go on.
const messageLimit = 4096

// HandlerState is what is known of one handler for one cause.
type HandlerState struct {
	// ID is the handler's.
	ID string
	// Active is true if the handler is selected for the present cause.
	Active bool
	// Started is when it was first selected.
	Started time.Time
	// Stopped is when it finished, either way.
	Stopped *time.Time
	// Delayed is until when it sleeps.
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
	// Succeeded are the sub-handlers of its record that succeeded and have no records of their own, without its own id.
	Succeeded []string

	// Postponed is true if there is no room on the object for the progress of a sub-handler that was not called yet. It
	// is not called, and leaves no trace.
	Postponed bool
	// Terse is true of a sub-handler if there is no room for more text of its next error than there is of the last one.
	Terse bool
	// Timed is true of a sub-handler if it matters when it was first selected.
	Timed bool

	loaded  *progress.Record
	blocked bool
	parts   *parts // its sub-handlers, met in this process; nil if there are none

	sub     bool // it is a sub-handler: whether its handler is finished is all that counts
	compact bool // it needs no record of its own unless there is something to tell
	named   bool // it succeeded, and its handler's record says so in place of its own
	level   int  // how many handlers it is a part of
	own     int  // the length of its id without that of its handler
}

// Account is what is known of the attempts that a handler has made before. The zero value is none.
type Account struct {
	// Retries counts them.
	Retries int
	// Started is when the first one was due; zero is now.
	Started time.Time
	// Until is until when the handler sleeps; zero or past is not at all.
	Until time.Time
	// Finished is true after a success, or a failure for good.
	Finished bool
	// Blocked is true if the handler waits until the object changes.
	Blocked bool
}

func newHandlerState(id, purpose string, now time.Time) *HandlerState {
	return &HandlerState{ID: id, Purpose: purpose, Started: now}
}

func fromRecord(id string, r *progress.Record, now time.Time) *HandlerState {
	e := &HandlerState{ID: id, Started: now, Stopped: r.Stopped, Delayed: r.Delayed, Message: r.Message, loaded: r}
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

// ownSubrefs are those that can be sub-handlers of the handler, each once. What else is listed is not ours: to purge it
// would remove other memory.
func ownSubrefs(id string, listed []string) []string {
	own := slices.DeleteFunc(slices.Clone(listed), func(sub string) bool { return !strings.HasPrefix(sub, id+"/") })
	if len(own) == 0 {
		return nil
	}
	return distinct(own)
}

// Finished is true after a success or a failure.
func (e *HandlerState) Finished() bool { return e.Success || e.Failure }

// delay is how long the handler still sleeps.
func (e *HandlerState) delay(now time.Time) time.Duration {
	if e.Delayed == nil {
		return 0
	}
	return max(0, e.Delayed.Sub(now))
}

// repurpose moves the handler to another cause. It keeps start, retries and delay; but it was done for its former
// purpose only, so success and failure are cleared.
func (e *HandlerState) repurpose(purpose string) {
	if e.Purpose == purpose {
		return
	}
	if e.Purpose != "" {
		e.Success, e.Failure, e.Stopped, e.Succeeded = false, false, nil, nil
	}
	e.Purpose = purpose
}

func (e *HandlerState) conclude(o Outcome, now time.Time) {
	e.Retries = min(e.Retries+1, mostRetries)
	e.Success = o.Final && o.Err == nil
	e.Failure = o.Final && o.Err != nil
	e.Delayed, e.Message = nil, nil
	if e.Finished() && e.Stopped == nil {
		e.Stopped = &now
	}
	if o.Delay != nil {
		until := now.Add(*o.Delay)
		e.Delayed = &until
	}
	if o.Err != nil {
		text := asciijson.Cut(o.Err.Error(), e.messageLimit())
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

// Record is the form to be persisted.
func (e *HandlerState) Record() progress.Record {
	started, retries, success, failure, purpose := e.Started, int64(e.Retries), e.Success, e.Failure, e.Purpose
	r := progress.Record{Started: &started, Stopped: e.Stopped, Delayed: e.Delayed, Retries: &retries,
		Success: &success, Failure: &failure, Message: e.Message, Subrefs: e.references(), Succeeded: e.done()}
	if purpose != "" {
		r.Purpose = &purpose
	}
	return r
}

// references are the sub-handlers with records, which are to be purged with its own.
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

// done are the sub-handlers that need no records because they succeeded. Once the handler itself is finished, it
// matters at most whether there are any.
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

// changed is true if the record differs from what was read, or from how that was written.
func (e *HandlerState) changed() bool {
	return e.loaded == nil || e.loaded.Foreign() || !e.loaded.Equal(e.Record())
}

// Recorded is true if the handler has, or is to have, a record of its own.
func (e *HandlerState) Recorded() bool {
	switch fresh := e.Retries == 0 && e.loaded == nil; {
	case !e.sub:
		return true
	case e.named, e.Postponed && fresh:
		return false
	default:
		return !e.compact || !fresh || e.Timed || e.parts != nil
	}
}

// Account is what the adapters need to know of the handler.
func (e *HandlerState) Account() Account {
	account := Account{Retries: e.Retries, Started: e.Started, Finished: e.Finished(), Blocked: e.blocked}
	if e.Delayed != nil {
		account.Until = *e.Delayed
	}
	if account.Started.IsZero() { // by a record of the year 1: an account takes that for none
		account.Started = account.Started.Add(1)
	}
	return account
}

// Waits gives the reason to make no attempt now; the zero value if there is none.
func (c Account) Waits(now time.Time) Stop {
	switch {
	case c.Finished:
		return Stop{Why: Finished}
	case c.Blocked:
		return Stop{Why: Blocked}
	case c.Until.After(now):
		return Stop{Why: Asleep, Until: c.Until}
	default:
		return Stop{}
	}
}

// Runtime is the time since the first attempt was due, waits included. A start in the future, by a clock that was
// wrong, is now.
func (c Account) Runtime(now time.Time) time.Duration {
	if c.Started.IsZero() {
		return 0
	}
	return max(0, now.Sub(c.Started))
}
