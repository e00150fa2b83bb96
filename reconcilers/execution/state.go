package execution

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// State has the states of all handlers of one object for one cause.
type State struct {
	// Purpose is the reason of the cause, as stored.
	Purpose string
	// Compact leaves out the records of sub-handlers that succeeded, or were not called yet: the record of their
	// handler names those that succeeded. Kopf cannot read that.
	Compact bool
	// KopfTexts words the errors of limits and sub-handlers in the records as Kopf does.
	KopfTexts bool

	handlers []*HandlerState
	byID     map[string]*HandlerState
	owned    []string
	read     func(id string) (*progress.Record, error)
	others   map[string]*progress.Record // records that were read of handlers without a state
}

// Counts says how many handlers succeeded, failed and are still running.
type Counts struct{ Success, Failure, Running int }

// removal removes records, each once.
type removal struct {
	to          progress.Writer
	patch, body map[string]any
	done        map[string]bool
	err         error // the first one
}

// Restore reads the records of the owned handlers, and makes new states for selected handlers without a record. It
// never reads records of other ids, which belong to other operators. The error is that of a malformed record.
func Restore(
	read func(id string) (*progress.Record, error), owned, selected []string, purpose string, now time.Time,
) (*State, error) {
	s := &State{byID: make(map[string]*HandlerState, len(owned)), owned: owned, read: read}
	for _, id := range owned {
		if s.byID[id] != nil {
			continue
		}
		record, err := read(id)
		if err != nil {
			return nil, fmt.Errorf("reading the progress of handler %q: %w", id, err)
		}
		if record != nil {
			s.add(fromRecord(id, record, now))
		}
	}
	s.Select(selected, purpose, now)
	return s, nil
}

// Select makes it the state for a cause: it adds new states for selected handlers without a record.
func (s *State) Select(selected []string, purpose string, now time.Time) {
	s.Purpose = purpose
	for _, id := range selected {
		if s.byID[id] == nil {
			s.add(newHandlerState(id, purpose, now))
		}
		s.byID[id].Active = true
	}
}

func (s *State) add(e *HandlerState) {
	s.handlers = append(s.handlers, e)
	s.byID[e.ID] = e
}

// Handler gives the state of one handler; nil if there is none.
func (s *State) Handler(id string) *HandlerState { return s.byID[id] }

// Handlers are the states of all handlers: the restored ones in the order of ownership, then the new ones in that of
// selection.
func (s *State) Handlers() []*HandlerState { return s.handlers }

// Superseding is true if any record belongs to another purpose.
func (s *State) Superseding() bool {
	for _, e := range s.handlers {
		if e.Purpose != "" && e.Purpose != s.Purpose {
			return true
		}
	}
	return false
}

// Repurpose moves the selected handlers to the purpose, and tells whether records of other purposes remain.
func (s *State) Repurpose(purpose string) (leftovers bool) {
	s.Purpose = purpose
	for _, e := range s.handlers {
		if e.Active {
			e.repurpose(purpose)
		}
	}
	return s.Superseding()
}

// Conclude takes the outcome of an attempt into the state of its handler. An aborted attempt does not count.
func (s *State) Conclude(id string, o Outcome, now time.Time) error {
	e := s.byID[id]
	if e == nil {
		return fmt.Errorf("an outcome of handler %q, which is not accounted for", id)
	}
	e.blocked = o.Blocked
	if !o.Aborted {
		s.conclude(e, o, now)
	}
	return nil
}

func (s *State) conclude(e *HandlerState, o Outcome, now time.Time) {
	e.conclude(o, s.KopfTexts, now)
	e.named = e.sub && e.compact && e.Success
}

// Revise replaces the outcome of the last attempt: it resets the state to the one before the attempt, and concludes
// the new outcome. It keeps the present record and selection, as the attempt may be of an earlier pass.
func (s *State) Revise(id string, before HandlerState, o Outcome, now time.Time) {
	e := s.byID[id]
	if e == nil {
		return
	}
	before.Active, before.loaded, before.parts = e.Active, e.loaded, e.parts
	*e = before
	s.conclude(e, o, now)
}

// Done is true if all selected handlers are finished. With none selected, it is true.
func (s *State) Done() bool {
	for _, e := range s.handlers {
		if e.Counts() && !e.Finished() {
			return false
		}
	}
	return true
}

// Delays gives the times until the next attempts of the selected unfinished handlers, 0 for those that are due.
// Handlers that wait until their object changes have none.
func (s *State) Delays(now time.Time) []time.Duration {
	var delays []time.Duration
	for _, e := range s.handlers {
		if e.Counts() && !e.Finished() && !e.blocked {
			delays = append(delays, e.delay(now))
		}
	}
	return delays
}

// Counts counts those of the present purpose or of none; extras, those of the other purposes.
func (s *State) Counts() (present Counts, extras map[string]Counts) {
	extras = map[string]Counts{}
	for _, e := range s.handlers {
		if e.Purpose == "" || e.Purpose == s.Purpose {
			present.add(e)
			continue
		}
		c := extras[e.Purpose]
		c.add(e)
		extras[e.Purpose] = c
	}
	return present, extras
}

func (c *Counts) add(e *HandlerState) {
	if e.Success {
		c.Success++
	}
	if e.Failure {
		c.Failure++ // a record may claim both
	}
	if !e.Finished() {
		c.Running++
	}
}

// Records are those of the selected handlers, by their ids.
func (s *State) Records() map[string]progress.Record {
	records := make(map[string]progress.Record, len(s.handlers))
	for _, e := range s.handlers {
		if e.Active {
			records[e.ID] = e.Record()
		}
	}
	return records
}

// StoredRecords are those of the selected handlers that are stored, by their ids, after [State.Written].
func (s *State) StoredRecords() map[string]progress.Record {
	records := make(map[string]progress.Record, len(s.handlers))
	for _, e := range s.handlers {
		if e.Active && e.loaded != nil {
			records[e.ID] = *e.loaded
		}
	}
	return records
}

// Store adds the changed records of the selected handlers to the merge-patch, and the removal of those that are not
// needed any more.
func (s *State) Store(to progress.Writer, patch, body map[string]any) error {
	for _, e := range s.handlers {
		if e.Active && !e.Recorded() && e.loaded != nil {
			if err := purgeAll(to, patch, body, e.ids()); err != nil {
				return err
			}
		}
		if !e.Active || !e.Recorded() || !e.changed() {
			continue
		}
		record := e.Record()
		if record.Message != nil {
			// A message that was read from the object may have any length, and escaping makes it longer.
			record.Message = ptr.To(asciijson.Cut(*record.Message, messageLimit))
		}
		if err := to.Store(patch, body, e.ID, record); err != nil {
			return fmt.Errorf("storing the progress of handler %q: %w", e.ID, err)
		}
		if err := purgeAll(to, patch, body, e.former); err != nil {
			return err
		}
	}
	return nil
}

// ids are the present id and the former ones of a sub-handler.
func (e *HandlerState) ids() []string { return append([]string{e.ID}, e.former...) }

// StoreAgain adds the unchanged records of the selected handlers to the merge-patch, for an object that has lost them.
func (s *State) StoreAgain(to progress.Writer, patch, body map[string]any) error {
	for _, e := range s.handlers {
		if !e.Active || !e.Recorded() || e.loaded == nil || e.changed() {
			continue
		}
		if err := to.Store(patch, body, e.ID, *e.loaded); err != nil {
			return fmt.Errorf("storing the lost progress of handler %q: %w", e.ID, err)
		}
	}
	return nil
}

// Continues tells whether the records are still those from which the state goes on, or those that it would leave, as
// the answer to its write was lost: nobody else has gone on from there.
func (s *State) Continues(read func(id string) (*progress.Record, error)) (bool, error) {
	ids := slices.Clone(s.owned)
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
		if e := s.byID[id]; e == nil && found != nil || e != nil && !e.continues(found) {
			return false, nil
		}
	}
	return true, nil
}

// Written marks the records as stored: they are not stored again unless they change.
func (s *State) Written() {
	for _, e := range s.handlers {
		if !e.Active {
			continue
		}
		if !e.Recorded() {
			e.loaded = nil
			continue
		}
		record := e.Record()
		e.loaded = &record
	}
}

// Purge adds the removal of all records of the owned handlers, and of their sub-handlers, to the merge-patch. It
// removes all records that it can, and returns the first error.
func (s *State) Purge(to progress.Writer, patch, body map[string]any) error {
	removal := removal{to: to, patch: patch, body: body, done: make(map[string]bool, len(s.owned))}
	for _, id := range s.owned {
		removal.of(id)
	}
	for _, e := range s.handlers {
		for _, id := range slices.Concat(e.ids(), e.Subrefs) {
			removal.of(id)
		}
	}
	return removal.err
}

// PurgePassive does the same for the handlers that are not selected any more.
// Those that are keep their records, whether or not they change in this pass.
func (s *State) PurgePassive(to progress.Writer, patch, body map[string]any) error {
	removal := removal{to: to, patch: patch, body: body, done: map[string]bool{}}
	for _, e := range s.handlers {
		if e.Active {
			continue
		}
		removal.of(e.ID)
		for _, id := range e.Subrefs {
			if other := s.byID[id]; other == nil || !other.Active {
				removal.of(id)
			}
		}
	}
	return removal.err
}

func (r *removal) of(id string) {
	if r.done[id] {
		return
	}
	r.done[id] = true
	if err := Purge(r.to, r.patch, r.body, id); err != nil && r.err == nil {
		r.err = err
	}
}

func purgeAll(to progress.Writer, patch, body map[string]any, ids []string) error {
	for _, id := range ids {
		if err := Purge(to, patch, body, id); err != nil {
			return err
		}
	}
	return nil
}

// Purge adds the removal of one record to the merge-patch. A storage that panics is an error.
func Purge(to progress.Writer, patch, body map[string]any, id string) error {
	err := panics.Contain(func() error { to.Purge(patch, body, id); return nil })
	if err != nil {
		return fmt.Errorf("removing the progress of handler %q: %w", id, err)
	}
	return nil
}

// Pick chooses from the states of the handlers that are due, given in the order of registration. They are not modified.
// An error is that of a function of the user.
func Pick(ctx context.Context, l handlers.Lifecycle, due []*HandlerState) ([]*HandlerState, error) {
	if len(due) == 0 || l == handlers.InOrder {
		return due, nil
	}
	if pick := l.PickFunc(); pick != nil {
		return pickBy(ctx, pick, due)
	}
	switch l {
	case handlers.ASAP:
		// The first of equals, as registered.
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

// ReadAgain makes Fetch read the records of handlers without a state again, because the object has changed.
func (s *State) ReadAgain() { s.others = nil }
