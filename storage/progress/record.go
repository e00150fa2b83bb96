package progress

import (
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Record is the progress of one handler on one object. Every field is optional; nil means that the key is absent, which
// has the documented meaning. Kopf: ProgressRecord.
//
// A record that was read is stored as it was read: a key that was absent stays absent, and a null stays a null. In
// other records, nil fields are written as nulls where the storage writes nulls: in the status, so that no value of an
// earlier record remains, and in verbose annotations. So create a new record for a change; do not modify a record that
// was read.
type Record struct {
	// Started is when the handler was first selected for the cause. Absent: now. Key: started.
	Started *time.Time
	// Stopped is when the handler finished, with success or failure. Key: stopped.
	Stopped *time.Time
	// Delayed is the time before which the handler must not be called. Absent: it may be called now. Key: delayed.
	Delayed *time.Time
	// Purpose is the reason of the record's cause: create, update, delete, resume. Absent or empty: any. Key: purpose.
	Purpose *string
	// Retries is the number of attempts so far, including the last one. Absent: 0. Key: retries.
	Retries *int64
	// Success is true if the handler finished without an error, or with an ignored one. Absent: false. Key: success.
	Success *bool
	// Failure is true if the handler finished with an error. Absent: false. Key: failure.
	Failure *bool
	// Message is the text of the last error. Key: message.
	Message *string
	// Subrefs are the ids of all sub-handlers that the handler has ever executed, at all levels, sorted. Key: subrefs.
	Subrefs []string
	// Succeeded are the sub-handlers that succeeded and do not have records of their own: their ids without the
	// handler's id and the slash, sorted. Kopf does not have this key. If it is nil, it is not written, not even as a
	// null. Key: succeeded.
	Succeeded []string
	// Awaited is the child that the handler waits for, or that it waited for most recently. Until is the end of that
	// wait. If sub-handlers wait, their handler has only Awaited.
	//
	// During the wait, Delayed equals Until, because Kopf does not have these keys, and must not call the handler
	// earlier. If they are nil, they are not written. Keys: awaited, until.
	Awaited *string
	Until   *time.Time
	// Trace is the trace of the attempts, set by the first one. Kopf does not have this key. If it is empty, it is not
	// written. A malformed trace is read as empty. Key: traceparent.
	Trace Trace

	// Unknown has the other keys of the stored record, which must not be modified. They have no meaning here, and
	// [Record.Equal] ignores them.
	Unknown map[string]any

	absentKeys uint16 // the keys that were absent, not null, when the record was read: one bit for each of recordFields
	foreign    bool   // the record was read in a form that this package does not write
}

// Wait is a handler's wait for a child: the handler is called again when the child is ready, or at the end of the time.
type Wait struct {
	// Child is the name of the child. Empty means that the handler does not wait.
	Child string
	// Until is the end of the wait. It is zero if a sub-handler waits, and not the handler itself.
	Until time.Time
}

// IsForeign reports whether the record was read in a form that this package does not write: with times in another
// spelling, or, in an annotation, with unknown keys. A continued handler writes such a record again, as Kopf does, even
// if its content did not change.
func (r Record) IsForeign() bool { return r.foreign }

// recordField is a key of a record. The function in returns a pointer to the struct field, whose type decides how the
// value is encoded.
type recordField struct {
	key       string
	pointerTo func(*Record) any
}

// recordFields has all keys. The order is that in which Kopf writes them, followed by the keys that Kopf does not have.
var recordFields = [...]recordField{
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

// kopfFieldCount is the number of fields that Kopf's records have, at the beginning of the list.
const kopfFieldCount = 9

// omitsField reports whether a field without a value is omitted instead of written as a null.
func (r Record) omitsField(place int) bool {
	return r.absentKeys&(1<<place) != 0 || place >= kopfFieldCount
}

// Equal reports whether two records have the same content, so that one need not be stored in place of the other. Times
// are compared in microseconds, as they are stored. An absent key does not equal its default. Unknown keys, and the
// difference between null and absence, are ignored.
func (r Record) Equal(other Record) bool {
	return equalTimes(r.Started, other.Started) &&
		equalTimes(r.Stopped, other.Stopped) &&
		equalTimes(r.Delayed, other.Delayed) &&
		equalPointers(r.Purpose, other.Purpose) &&
		equalPointers(r.Retries, other.Retries) &&
		equalPointers(r.Success, other.Success) &&
		equalPointers(r.Failure, other.Failure) &&
		equalPointers(r.Message, other.Message) &&
		// An empty list differs from an absent one for subrefs, but not for succeeded.
		(r.Subrefs == nil) == (other.Subrefs == nil) && slices.Equal(r.Subrefs, other.Subrefs) &&
		slices.Equal(r.Succeeded, other.Succeeded) &&
		equalPointers(r.Awaited, other.Awaited) &&
		equalTimes(r.Until, other.Until) &&
		r.Trace == other.Trace
}

// Clone returns a deep copy of the record.
func (r Record) Clone() Record {
	r.Started, r.Stopped, r.Delayed = clonePointer(r.Started), clonePointer(r.Stopped), clonePointer(r.Delayed)
	r.Purpose, r.Retries, r.Message = clonePointer(r.Purpose), clonePointer(r.Retries), clonePointer(r.Message)
	r.Success, r.Failure = clonePointer(r.Success), clonePointer(r.Failure)
	r.Awaited, r.Until = clonePointer(r.Awaited), clonePointer(r.Until)
	r.Subrefs, r.Succeeded = slices.Clone(r.Subrefs), slices.Clone(r.Succeeded)
	r.Unknown, _ = diff.DeepCopy(r.Unknown).(map[string]any)
	return r
}

// clonePointer returns a pointer to a copy of the value, nil for nil.
func clonePointer[T any](value *T) *T {
	if value == nil {
		return nil
	}
	own := *value
	return &own
}

// equalPointers reports whether two optional values are both absent or equal.
func equalPointers[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// equalTimes is the same for times, with the precision in which they are stored.
func equalTimes(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UnixMicro() == b.UnixMicro()
}
