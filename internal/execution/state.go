package execution

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// State holds the progress of all handlers of one object for one cause.
type State struct {
	// Purpose is the reason of the cause, as stored.
	Purpose string
	// Compact omits the records of sub-handlers that succeeded or were not called yet. The record of their parent names
	// those that succeeded. Kopf cannot read that form.
	Compact bool
	// KopfTexts records the errors of limits and sub-handlers with Kopf's texts.
	KopfTexts bool

	handlers     []*HandlerState                           // the states in the order of [State.AllStates]
	byID         map[string]*HandlerState                  // the same by their ids
	ownedIDs     []string                                  // the ids whose records belong to this operator
	readRecord   func(id string) (*progress.Record, error) // reads a record from the object
	otherRecords map[string]*progress.Record               // the records that were read for handlers without a state
}

// Counts has the numbers of succeeded, failed and unfinished handlers.
type Counts struct{ Success, Failure, Running int }

// RestoreState reads the records of the owned handlers, and adds states for the selected handlers without a record. It
// does not read records of other ids: they belong to other operators. The error is that of a malformed record.
func RestoreState(
	read func(id string) (*progress.Record, error), owned, selected []string, purpose string, now time.Time,
) (*State, error) {
	s := &State{byID: make(map[string]*HandlerState, len(owned)), ownedIDs: owned, readRecord: read}
	for _, id := range owned {
		if s.byID[id] != nil {
			continue
		}
		record, err := read(id)
		if err != nil {
			return nil, fmt.Errorf("reading the progress of handler %q: %w", id, err)
		}
		if record != nil {
			s.addState(fromRecord(id, record, now))
		}
	}
	s.SelectHandlers(selected, purpose, now)
	return s, nil
}

// SelectHandlers makes it the state of a cause: it adds states for the selected handlers without a record.
func (s *State) SelectHandlers(selected []string, purpose string, now time.Time) {
	s.Purpose = purpose
	for _, id := range selected {
		if s.byID[id] == nil {
			s.addState(newHandlerState(id, purpose, now))
		}
		s.byID[id].Active = true
	}
}

func (s *State) addState(e *HandlerState) {
	s.handlers = append(s.handlers, e)
	s.byID[e.ID] = e
}

// StateOf returns the state of one handler; nil if there is none.
func (s *State) StateOf(id string) *HandlerState { return s.byID[id] }

// AllStates returns the states of all handlers: the restored ones in the order of ownership, then the new ones in that
// of selection.
func (s *State) AllStates() []*HandlerState { return s.handlers }

// IsSuperseding reports whether any record belongs to another purpose.
func (s *State) IsSuperseding() bool {
	for _, e := range s.handlers {
		if e.Purpose != "" && e.Purpose != s.Purpose {
			return true
		}
	}
	return false
}

// MoveToPurpose moves the selected handlers to the purpose, and reports whether records of other purposes remain.
func (s *State) MoveToPurpose(purpose string) (leftovers bool) {
	s.Purpose = purpose
	for _, e := range s.handlers {
		if e.Active {
			e.moveToPurpose(purpose)
		}
	}
	return s.IsSuperseding()
}

// ConcludeAttempt applies the outcome of an attempt to its handler. An aborted attempt does not count.
func (s *State) ConcludeAttempt(id string, o Outcome, now time.Time) error {
	e := s.byID[id]
	if e == nil {
		return fmt.Errorf("an outcome of handler %q, which is not accounted for", id)
	}
	e.blocked = o.Blocked
	if !o.Aborted {
		s.applyOutcome(e, o, now)
	}
	return nil
}

func (s *State) applyOutcome(e *HandlerState, o Outcome, now time.Time) {
	e.applyOutcome(o, s.KopfTexts, now)
	e.isNamedByParent = e.isSub && e.compact && e.Success
}

// ReviseOutcome replaces the outcome of the last attempt: it restores the state before the attempt, and applies the new
// outcome. It keeps the present record and selection, as the attempt can belong to an earlier pass.
func (s *State) ReviseOutcome(id string, before HandlerState, o Outcome, now time.Time) {
	e := s.byID[id]
	if e == nil {
		return
	}
	before.Active, before.storedRecord, before.declaredSubs = e.Active, e.storedRecord, e.declaredSubs
	*e = before
	s.applyOutcome(e, o, now)
}

// AllFinished reports whether all selected handlers are finished; true if none is selected.
func (s *State) AllFinished() bool {
	for _, e := range s.handlers {
		if e.IsCounted() && !e.IsFinished() {
			return false
		}
	}
	return true
}

// NextDelays returns the times until the next attempts of the selected unfinished handlers, 0 for those that are due.
// It omits handlers that wait until their object changes.
func (s *State) NextDelays(now time.Time) []time.Duration {
	var delays []time.Duration
	for _, e := range s.handlers {
		if e.IsCounted() && !e.IsFinished() && !e.blocked {
			delays = append(delays, e.NextDelay(now))
		}
	}
	return delays
}

// CountByPurpose returns the counts for the present purpose, including records without one, and those of each other
// purpose.
func (s *State) CountByPurpose() (present Counts, extras map[string]Counts) {
	extras = map[string]Counts{}
	for _, e := range s.handlers {
		if e.Purpose == "" || e.Purpose == s.Purpose {
			present.countState(e)
			continue
		}
		c := extras[e.Purpose]
		c.countState(e)
		extras[e.Purpose] = c
	}
	return present, extras
}

func (c *Counts) countState(e *HandlerState) {
	if e.Success {
		c.Success++
	}
	if e.Failure {
		c.Failure++ // not else: a foreign record can claim both
	}
	if !e.IsFinished() {
		c.Running++
	}
}

// ActiveRecords returns the records of the selected handlers by their ids.
func (s *State) ActiveRecords() map[string]progress.Record {
	records := make(map[string]progress.Record, len(s.handlers))
	for _, e := range s.handlers {
		if e.Active {
			records[e.ID] = e.AsRecord()
		}
	}
	return records
}

// StoredRecords returns the stored records of the selected handlers by their ids. Call it after [State.MarkWritten].
func (s *State) StoredRecords() map[string]progress.Record {
	records := make(map[string]progress.Record, len(s.handlers))
	for _, e := range s.handlers {
		if e.Active && e.storedRecord != nil {
			records[e.ID] = *e.storedRecord
		}
	}
	return records
}

// StoreChanged adds the changed records of the selected handlers to the merge-patch, and removes records that are not
// needed any more.
func (s *State) StoreChanged(to progress.Writer, patch, body map[string]any) error {
	for _, e := range s.handlers {
		if e.Active && !e.NeedsRecord() && e.storedRecord != nil {
			if err := PurgeRecords(to, patch, body, e.allIDs()); err != nil {
				return err
			}
		}
		if !e.Active || !e.NeedsRecord() || !e.hasChanged() {
			continue
		}
		record := e.AsRecord()
		if record.Message != nil {
			// A message from the object can have any length, and escaping makes it longer.
			record.Message = ptr.To(asciijson.CutText(*record.Message, messageLimit))
		}
		if err := to.Store(patch, body, e.ID, record); err != nil {
			return fmt.Errorf("storing the progress of handler %q: %w", e.ID, err)
		}
		if err := PurgeRecords(to, patch, body, e.formerIDs); err != nil {
			return err
		}
	}
	return nil
}

// allIDs returns the present id and the former ones of a sub-handler.
func (e *HandlerState) allIDs() []string { return append([]string{e.ID}, e.formerIDs...) }

// StoreUnchanged adds the unchanged records of the selected handlers to the merge-patch, for an object that has lost
// them.
func (s *State) StoreUnchanged(to progress.Writer, patch, body map[string]any) error {
	for _, e := range s.handlers {
		if !e.Active || !e.NeedsRecord() || e.storedRecord == nil || e.hasChanged() {
			continue
		}
		if err := to.Store(patch, body, e.ID, *e.storedRecord); err != nil {
			return fmt.Errorf("storing the lost progress of handler %q: %w", e.ID, err)
		}
	}
	return nil
}

// ContinuesRecords reports whether the records on the object are the loaded ones, or those that the state would write:
// the answer to that write can have been lost. Otherwise, another operator has continued from them.
func (s *State) ContinuesRecords(read func(id string) (*progress.Record, error)) (bool, error) {
	ids := slices.Clone(s.ownedIDs)
	for _, e := range s.handlers {
		if !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	for _, id := range ids {
		found, err := read(id)
		if err != nil {
			return false, fmt.Errorf("reading the progress of handler %q: %w", id, err)
		}
		if e := s.byID[id]; e == nil && found != nil || e != nil && !e.continuesRecord(found) {
			return false, nil
		}
	}
	return true, nil
}

// MarkWritten marks the records as stored: they are stored again only after a change.
func (s *State) MarkWritten() {
	for _, e := range s.handlers {
		if !e.Active {
			continue
		}
		if !e.NeedsRecord() {
			e.storedRecord = nil
			continue
		}
		record := e.AsRecord()
		e.storedRecord = &record
	}
}

// PurgeAll adds the removal of all records of the owned handlers and their sub-handlers to the merge-patch. It
// continues after errors, and returns the first one.
func (s *State) PurgeAll(to progress.Writer, patch, body map[string]any) error {
	ids := slices.Clone(s.ownedIDs)
	for _, e := range s.handlers {
		ids = append(append(ids, e.allIDs()...), e.Subrefs...)
	}
	return PurgeRecords(to, patch, body, ids)
}

// PurgePassive adds the removal of the records of handlers that are not selected any more. The records of selected
// handlers stay, including those that do not change in this pass.
func (s *State) PurgePassive(to progress.Writer, patch, body map[string]any) error {
	var ids []string
	for _, e := range s.handlers {
		if e.Active {
			continue
		}
		ids = append(ids, e.ID)
		for _, id := range e.Subrefs {
			if other := s.byID[id]; other == nil || !other.Active {
				ids = append(ids, id)
			}
		}
	}
	return PurgeRecords(to, patch, body, ids)
}

// PurgeRecords adds the removal of each of the records to the merge-patch, once. It continues after errors, and returns
// the first one.
func PurgeRecords(to progress.Writer, patch, body map[string]any, ids []string) (first error) {
	done := make(map[string]bool, len(ids))
	for _, id := range ids {
		if done[id] {
			continue
		}
		done[id] = true
		if err := purgeRecord(to, patch, body, id); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// purgeRecord adds the removal of one record to the merge-patch. A panic of the storage is returned as an error.
func purgeRecord(to progress.Writer, patch, body map[string]any, id string) error {
	err := panics.Contain(func() error { to.Purge(patch, body, id); return nil })
	if err != nil {
		return fmt.Errorf("removing the progress of handler %q: %w", id, err)
	}
	return nil
}

// PickHandlers returns the handlers to call, from the states of the due handlers in the order of registration. The
// states are not modified. An error is that of the user's function.
func PickHandlers(ctx context.Context, l handlers.Lifecycle, due []*HandlerState) ([]*HandlerState, error) {
	if len(due) == 0 || l == handlers.InOrder {
		return due, nil
	}
	if pick := l.PickFunc(); pick != nil {
		return pickByFunction(ctx, pick, due)
	}
	switch l {
	case handlers.ASAP:
		// MinFunc returns the first minimum: the earliest registration.
		fewest := func(a, b *HandlerState) int { return cmp.Compare(a.Retries, b.Retries) }
		return []*HandlerState{slices.MinFunc(due, fewest)}, nil
	case handlers.OneByOne:
		return due[:1:1], nil
	case handlers.Randomized:
		return []*HandlerState{due[rand.IntN(len(due))]}, nil
	case handlers.Shuffled:
		shuffled := slices.Clone(due)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return shuffled, nil
	default:
		return due, nil
	}
}

// ForgetRecords makes Fetch read the records of handlers without a state again, because the object has changed.
func (s *State) ForgetRecords() { s.otherRecords = nil }
