package progress

import (
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Record is the progress of one handler on one object. Every field is optional: nil is the absence of the key, which
// has a meaning of its own. Kopf: ProgressRecord.
//
// A record that was read is stored as it came, whether a key was absent or null. In all others, a nil field is a null,
// where nulls are written at all: in the status, so that nothing of a former record stays there, and in verbose
// annotations. So make a new record for what has changed; do not change one that was read.
type Record struct {
	// Started is when the handler was selected for the cause first. Absent: now. Key: started.
	Started *time.Time
	// Stopped is when the handler finished, either way. Key: stopped.
	Stopped *time.Time
	// Delayed is before when the handler must not be called. Absent: it may be called at once. Key: delayed.
	Delayed *time.Time
	// Purpose is the cause that the record belongs to: create, update, delete, resume. Absent or empty: any. Key:
	// purpose.
	Purpose *string
	// Retries is how many attempts were made, the last one included. Absent: 0. Key: retries.
	Retries *int64
	// Success is whether the handler finished without an error, or with one to be ignored. Absent: false. Key: success.
	Success *bool
	// Failure is whether the handler finished with an error. Absent: false. Key: failure.
	Failure *bool
	// Message is the text of the last error. Key: message.
	Message *string
	// Subrefs are the ids of all sub-handlers ever executed by the handler, at all levels, sorted. Key: subrefs.
	Subrefs []string
	// Succeeded is the sub-handlers that succeeded and have no records of their own: their ids without that of the
	// handler and the slash, sorted. Kopf does not know it; where it is nil, it is not written, not even as a null.
	// Key: succeeded.
	Succeeded []string
	// Awaited is the child that the handler waits for, or waited for at last; Until is when that was to end. Of a
	// handler whose sub-handlers wait, there is the child alone. While it waits, Delayed is the same moment, so that
	// Kopf, which knows neither, does not call it before. Where they are nil, they are not written. Keys: awaited,
	// until.
	Awaited *string
	Until   *time.Time
	// Trace is the trace that the attempts belong to, by the first of them. Kopf does not know it; where it is empty,
	// it is not written. What is malformed reads as if it were not there. Key: traceparent.
	Trace Trace

	// Unknown is what else was found in the record, read only. It has no meaning here, and is no part of
	// [Record.Equal].
	Unknown map[string]any

	absent  keySet // the keys that were not even null when the record was read
	foreign bool   // it was read in another form than it would be written in
}

// Wait is what a handler waits for: it is called again when the child is as wanted, and at the end of the time.
type Wait struct {
	// Child names it; empty is no wait.
	Child string
	// Until is the end; zero if it is a part of the handler that waits.
	Until time.Time
}

// Foreign tells whether the record was read in another form than it is written in: with times that are spelled
// otherwise, or, in an annotation, with unknown keys. Whoever goes on with it writes it anew, as Kopf does, even if it
// says the same.
func (r Record) Foreign() bool { return r.foreign }

// keySet is a set of places in the list of fields: a bit for each.
type keySet uint16

func (s keySet) has(place int) bool {
	return s&(1<<place) != 0
}

// field is a key of a record with the place of its value: a pointer to the field of the struct, whose type says what
// the value is.
type field struct {
	key string
	in  func(*Record) any
}

// fields are in the order in which Kopf writes them.
var fields = [...]field{
	{"started", func(r *Record) any { return &r.Started }},
	{"stopped", func(r *Record) any { return &r.Stopped }},
	{"delayed", func(r *Record) any { return &r.Delayed }},
	{"purpose", func(r *Record) any { return &r.Purpose }},
	{"retries", func(r *Record) any { return &r.Retries }},
	{"success", func(r *Record) any { return &r.Success }},
	{"failure", func(r *Record) any { return &r.Failure }},
	{"message", func(r *Record) any { return &r.Message }},
	{"subrefs", func(r *Record) any { return &r.Subrefs }},
	{"succeeded", func(r *Record) any { return &r.Succeeded }},
	{"awaited", func(r *Record) any { return &r.Awaited }},
	{"until", func(r *Record) any { return &r.Until }},
	{"traceparent", func(r *Record) any { return &r.Trace }},
}

// kopfFields is how many of them Kopf's records have: the first ones.
const kopfFields = 9

// omits tells whether a field without a value is left out, rather than a null.
func (r Record) omits(place int) bool { return r.absent.has(place) || place >= kopfFields }

// Equal tells whether two records say the same, so that the one need not be stored in place of the other. Times are
// compared as they are stored, in microseconds; an absent key is not the same as its default. Unknown keys do not
// count, and neither does the difference of null and absence.
func (r Record) Equal(other Record) bool {
	return sameTime(r.Started, other.Started) &&
		sameTime(r.Stopped, other.Stopped) &&
		sameTime(r.Delayed, other.Delayed) &&
		same(r.Purpose, other.Purpose) &&
		same(r.Retries, other.Retries) &&
		same(r.Success, other.Success) &&
		same(r.Failure, other.Failure) &&
		same(r.Message, other.Message) &&
		(r.Subrefs == nil) == (other.Subrefs == nil) && slices.Equal(r.Subrefs, other.Subrefs) &&
		slices.Equal(r.Succeeded, other.Succeeded) &&
		same(r.Awaited, other.Awaited) &&
		sameTime(r.Until, other.Until) &&
		r.Trace == other.Trace
}

// Clone returns a record that shares nothing with this one.
func (r Record) Clone() Record {
	r.Started, r.Stopped, r.Delayed = cloned(r.Started), cloned(r.Stopped), cloned(r.Delayed)
	r.Purpose, r.Retries, r.Message = cloned(r.Purpose), cloned(r.Retries), cloned(r.Message)
	r.Success, r.Failure = cloned(r.Success), cloned(r.Failure)
	r.Awaited, r.Until = cloned(r.Awaited), cloned(r.Until)
	r.Subrefs, r.Succeeded = slices.Clone(r.Subrefs), slices.Clone(r.Succeeded)
	r.Unknown, _ = diff.Copy(r.Unknown).(map[string]any)
	return r
}

func cloned[T any](value *T) *T {
	if value == nil {
		return nil
	}
	own := *value
	return &own
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UnixMicro() == b.UnixMicro()
}
