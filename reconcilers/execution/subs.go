package execution

import (
	"fmt"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// PendingError is what a function fails with whose sub-handlers are not all finished. It is no failure: whatever its
// limits are, it is called again. Kopf: HandlerChildrenRetry.
type PendingError struct {
	// Delay is how long the nearest of the sub-handlers sleeps.
	Delay time.Duration
}

// Error is Kopf's text: it stands in the records on the object.
func (e *PendingError) Error() string { return "None" }

// RetryAfter makes it a temporary error to everybody who does not know better.
func (e *PendingError) RetryAfter() time.Duration { return e.Delay }

// Sub takes up the account of a sub-handler: as it is on the object, or anew. Its ancestors, given by their ids, the
// nearest one last, remember that there is one, so that its record goes with theirs. A new one is postponed: it is for
// the caller to find room for it.
func (s *State) Sub(
	read func(id string) (*progress.Record, error), h *handlers.Handler, ancestors []string, now time.Time,
) (*HandlerState, error) {
	e := s.byID[h.ID]
	if e == nil {
		parent := s.byID[ancestors[len(ancestors)-1]]
		var err error
		if e, err = s.takeUp(read, h.ID, parent, now); err != nil {
			return nil, err
		}
		e.level, e.own, e.Timed = len(ancestors), len(parent.relative(h.ID)), h.Policy.Timeout != nil
		s.add(e)
	}
	for i, ancestor := range ancestors {
		if a := s.byID[ancestor]; a != nil {
			a.meet(e, i == len(ancestors)-1)
		}
	}
	return e, nil
}

func (s *State) takeUp(
	read func(id string) (*progress.Record, error), id string, parent *HandlerState, now time.Time,
) (*HandlerState, error) {
	e := newHandlerState(id, s.Purpose, now)
	if parent.hasSucceeded(id) {
		e.Retries, e.Success, e.Stopped, e.named = 1, true, &now, true
	} else {
		record, err := read(id)
		if err != nil {
			return nil, fmt.Errorf("reading the progress of sub-handler %q: %w", id, err)
		}
		if record != nil {
			e = fromRecord(id, record, now)
			e.repurpose(s.Purpose)
		}
	}
	e.Active, e.sub, e.compact = true, true, s.Compact
	e.Postponed = e.Retries == 0 && e.loaded == nil
	e.named = e.named || e.compact && e.Success
	return e, nil
}

// hasSucceeded tells whether the record of the handler says so of a sub-handler.
func (e *HandlerState) hasSucceeded(id string) bool {
	_, found := slices.BinarySearch(e.Succeeded, e.relative(id))
	return found
}
