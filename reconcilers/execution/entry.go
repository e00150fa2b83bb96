package execution

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Entry is the account of one handler for one cause.
type Entry struct {
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
	// Subrefs are the ids of all sub-handlers ever met, sorted.
	Subrefs []string

	loaded  *progress.Record
	blocked bool
	sub     bool // it is part of another handler: whether that is finished is all that counts
}

func newEntry(id, purpose string, now time.Time) *Entry {
	return &Entry{ID: id, Purpose: purpose, Started: now}
}

func fromRecord(id string, r *progress.Record, now time.Time) *Entry {
	e := &Entry{ID: id, Started: now, Stopped: r.Stopped, Delayed: r.Delayed, Message: r.Message, Subrefs: ownSubrefs(id, r.Subrefs), loaded: r}
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

// Finished is true after a success or a failure.
func (e *Entry) Finished() bool { return e.Success || e.Failure }

// Awakened is true if the handler may be called now.
func (e *Entry) Awakened(now time.Time) bool {
	return !e.Finished() && !e.blocked && (e.Delayed == nil || !e.Delayed.After(now))
}

// Runtime is the time since the first selection, waits included. A start in the future, by a clock that was wrong, is now.
func (e *Entry) Runtime(now time.Time) time.Duration { return max(0, now.Sub(e.Started)) }

// delay is how long the handler still sleeps.
func (e *Entry) delay(now time.Time) time.Duration {
	if e.Delayed == nil {
		return 0
	}
	return max(0, e.Delayed.Sub(now))
}

func (e *Entry) conclude(o Outcome, now time.Time) {
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
		text := shortened(o.Err.Error())
		e.Message = &text
	}
	e.Subrefs = union(e.Subrefs, o.Subrefs)
}

// repurpose moves the entry to another cause. It keeps start, retries and delay; but it was done for its former
// purpose only, so success and failure are cleared.
func (e *Entry) repurpose(purpose string) {
	if e.Purpose == purpose {
		return
	}
	if e.Purpose != "" {
		e.Success, e.Failure, e.Stopped = false, false, nil
	}
	e.Purpose = purpose
}

// mostRetries is where counting ends: a record may say anything, and no number may become a negative one.
const mostRetries = math.MaxInt32

// ownSubrefs are those that can be sub-handlers of the handler, each once. What else is listed is not ours: to purge it
// would remove other memory.
func ownSubrefs(id string, listed []string) []string {
	own := slices.DeleteFunc(slices.Clone(listed), func(sub string) bool { return !strings.HasPrefix(sub, id+"/") })
	if len(own) == 0 {
		return nil
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// messageLimit is how many bytes of an error are remembered: annotations have little room, and an object whose records
// are refused for their size could not go on.
const messageLimit = 4096

func shortened(text string) string {
	if len(text) <= messageLimit {
		return text
	}
	return strings.ToValidUTF8(text[:messageLimit], "") + "…"
}

func union(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Record is the form to be persisted.
func (e *Entry) Record() progress.Record {
	started, retries, success, failure, purpose := e.Started, int64(e.Retries), e.Success, e.Failure, e.Purpose
	r := progress.Record{Started: &started, Stopped: e.Stopped, Delayed: e.Delayed, Retries: &retries,
		Success: &success, Failure: &failure, Message: e.Message, Subrefs: e.Subrefs}
	if purpose != "" {
		r.Purpose = &purpose
	}
	return r
}

// changed is true if the record differs from what was read, or from how that was written.
func (e *Entry) changed() bool {
	return e.loaded == nil || e.loaded.Foreign() || !e.loaded.Equal(e.Record())
}
