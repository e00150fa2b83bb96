package execution

import (
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// PendingError is what a function fails with whose sub-handlers are not all finished. It is no failure: whatever its limits are,
// it is called again. Kopf: HandlerChildrenRetry.
type PendingError struct {
	// Delay is how long the nearest of the sub-handlers sleeps.
	Delay time.Duration
}

// Error is Kopf's text: it stands in the records on the object.
func (e *PendingError) Error() string { return "None" }

// RetryAfter makes it a temporary error to everybody who does not know better.
func (e *PendingError) RetryAfter() time.Duration { return e.Delay }

// Sub takes up the account of a sub-handler: as it is on the object, or anew. Its ancestors, given by their ids, remember that
// there is one, so that its record goes with theirs.
func (s *State) Sub(read func(id string) (*progress.Record, error), id string, ancestors []string, now time.Time) (*Entry, error) {
	for _, ancestor := range ancestors {
		if e := s.byID[ancestor]; e != nil {
			e.Subrefs = union(e.Subrefs, []string{id})
		}
	}
	if e := s.byID[id]; e != nil {
		return e, nil
	}
	record, err := read(id)
	if err != nil {
		return nil, fmt.Errorf("reading the progress of sub-handler %q: %w", id, err)
	}
	e := newEntry(id, s.Purpose, now)
	if record != nil {
		e = fromRecord(id, record, now)
		e.repurpose(s.Purpose)
	}
	e.Active, e.sub = true, true
	s.add(e)
	return e, nil
}
