package changes

import (
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Memory holds the state of one object between passes that is not stored on the object. It belongs to a UID. The zero
// value is that of a new object.
type Memory struct {
	// Initial is true if the object was in the first list and has not been handled completely since.
	Initial bool
	// HandledState allows this process to restore the memory on the object if another client removes it. Every handled
	// object has it, so it is small, and [Memory.IsEmpty] ignores it.
	HandledState HandledState

	unwrittenOutcomes    *outcomes // outcomes that the API server did not accept yet; nil if there are none
	isLastWriteUncertain bool      // it is not known whether the last write was done

	loggedMissingFields string          // the fields of handlers that the object cannot have, as logged
	loggedLongDelays    string          // the handlers with very long delays, as logged
	loggedErrors        map[string]bool // the logged errors of malformed memory, of an object that is being deleted

	unstoredRecords map[string]progress.Record // records that could not be stored on such an object
	// the hash of the last edit that retried the handlers of such an object, or zero
	retriedEditHash uint64

	openRecords openRecords // the records of our last write, while a cause is open
	losses      *losses     // of our memory on the object; nil if there were none

	ownWrites *ownWrites // our writes that call handlers; nil if there are none

	answeredRequest string // the last request that was answered, while the object has it
	pauseReported   bool   // the condition of the present pause was written

	conditionsGeneration int64 // generation of the conditions written without calls, plus one; zero if none
}

// isNew reports whether the error was not logged yet, and marks it as logged.
func (m *Memory) isNew(err error) bool {
	text := err.Error()
	if m.loggedErrors[text] {
		return false
	}
	// Forgetting all of them can repeat a line, but keeps the memory small.
	if m.loggedErrors == nil || len(m.loggedErrors) >= maxLoggedErrors {
		m.loggedErrors = map[string]bool{}
	}
	m.loggedErrors[text] = true
	return true
}

// HandledState is the process's knowledge of a handled object. The zero value means that the object was not handled.
type HandledState struct {
	// Hash is the [cause.HashEssence] of the last-handled essence; zero if no change was handled completely.
	Hash uint64
	// HadFinalizer is true if the object had our finalizer.
	HadFinalizer bool
	// IsPaused is true if the object is paused by its annotation, HasFailed if handlers of its last change have failed
	// permanently.
	IsPaused, HasFailed bool
}

// maxLoggedErrors caps the number of remembered texts: users who can edit the object can cause any number of them.
const maxLoggedErrors = 16

// IsEmpty reports whether the memory is empty and can be dropped.
func (m *Memory) IsEmpty() bool {
	return !m.Initial && m.unwrittenOutcomes == nil && !m.isLastWriteUncertain && m.loggedMissingFields == "" &&
		m.loggedLongDelays == "" &&
		m.loggedErrors == nil && m.retriedEditHash == 0 && m.unstoredRecords == nil && m.openRecords.handling == nil &&
		m.losses == nil && m.conditionsGeneration == 0 &&
		m.ownWrites == nil && m.answeredRequest == "" && !m.pauseReported
}

// detachObjects drops the references to the objects that unwritten outcomes were read from, as Memory can live long.
func (m *Memory) detachObjects() {
	if m.unwrittenOutcomes != nil {
		m.unwrittenOutcomes.state.DetachObject()
		m.unwrittenOutcomes.observation.state.DetachObject()
	}
}

// HasUnwrittenOutcomes reports whether outcomes of handlers could not be written yet.
func (m *Memory) HasUnwrittenOutcomes() bool { return m.unwrittenOutcomes != nil }

// openRecords are the records of an open cause that our last write left on the object. They are only valid for the
// Handling that wrote them: after a pause, another operator can have removed them on purpose.
type openRecords struct {
	handling *ChangeHandling
	byID     map[string]progress.Record
}

// losses delay the writes of our memory on one object while another client keeps removing it.
type losses struct {
	count int
	delay time.Duration // between the last write and the next one
	until time.Time     // the earliest time of the next write
}

// remainingDelay returns the time until the next write is allowed.
func (l *losses) remainingDelay(now time.Time) time.Duration { return max(0, l.until.Sub(now)) }

// countLoss counts a loss, and doubles the delay before the next write.
func (l *losses) countLoss(now time.Time) {
	l.count++
	l.delay = min(max(time.Second, 2*l.delay), maxRewriteDelay)
	l.until = now.Add(l.delay)
}

// areOver reports whether our memory has lasted so long that the next loss starts with a short delay again.
func (l *losses) areOver(now time.Time) bool { return now.Sub(l.until) > max(time.Minute, l.delay) }

// maxRewriteDelay is the longest delay before lost memory is written again.
const maxRewriteDelay = 10 * time.Minute

// ownWrites tracks the updates of one object that its own handlers have caused.
type ownWrites struct {
	essenceHash uint64 // hash of the essence after our last write; zero if the write causes no update
	guard       kind.LoopGuard
}
