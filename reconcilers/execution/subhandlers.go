package execution

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// partMessageLimit is how many bytes of JSON the error of a sub-handler takes in its record, as there may be hundreds
// of sub-handlers. The log has the whole text.
const partMessageLimit = 256

// longest is a text with an ellipsis, as JSON.
var longest = strings.Repeat("x", partMessageLimit+len(`\u2026`))

// parts are the sub-handlers of one handler that were declared in this process.
type parts struct {
	direct []*HandlerState
	all    map[string]*HandlerState
}

// Sub restores the state of a sub-handler from the object, or makes a new one. It adds the sub-handler to its
// ancestors, given by their ids, the nearest one last, so that their purges remove its record. A new one is postponed
// until the caller has found room for its record.
func (s *State) Sub(h *handlers.Handler, ancestors []string, now time.Time) (*HandlerState, error) {
	e := s.byID[h.ID]
	if e == nil {
		parent := s.byID[ancestors[len(ancestors)-1]]
		var err error
		if e, err = s.takeUp(h.ID, h.FormerIDs, parent, now); err != nil {
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

// Known is the state of a sub-handler whether it is declared or not: the one of [State.Sub], or what the object says of
// it under this id or a former one, which may be nothing.
func (s *State) Known(id string, former []string, parent string, now time.Time) (*HandlerState, error) {
	if e := s.byID[id]; e != nil {
		return e, nil
	}
	return s.takeUp(id, former, s.byID[parent], now)
}

// Release ends the waiting for others. The time of a sub-handler that was not called yet begins now.
func (e *HandlerState) Release(now time.Time) {
	if e.Waiting && !e.Tried() {
		e.Started = now
	}
	e.Waiting = false
}

func (s *State) takeUp(
	id string, former []string, parent *HandlerState, now time.Time,
) (*HandlerState, error) {
	e := newHandlerState(id, s.Purpose, now)
	for _, known := range append([]string{id}, former...) {
		if parent.hasSucceeded(known) {
			e.Retries, e.Success, e.Stopped, e.named = 1, true, &now, true
			break
		}
		record, err := s.Fetch(known)
		if err != nil {
			return nil, fmt.Errorf("reading the progress of sub-handler %q: %w", known, err)
		}
		if record != nil {
			e = fromRecord(id, record, now)
			e.repurpose(s.Purpose)
			break
		}
	}
	e.former = former
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

// meet makes the handler remember a sub-handler of its own, or of one of these.
func (e *HandlerState) meet(met *HandlerState, direct bool) {
	if e.parts == nil {
		e.parts = &parts{all: map[string]*HandlerState{}}
	}
	if e.parts.all[met.ID] != nil {
		return
	}
	e.parts.all[met.ID] = met
	if direct {
		e.parts.direct = append(e.parts.direct, met)
	}
}

// Sub is true for sub-handlers.
func (e *HandlerState) Sub() bool { return e.sub }

func (e *HandlerState) relative(id string) string {
	return strings.TrimPrefix(id, handlers.SubID(e.ID, ""))
}

// Reserved is the record with the most that the next attempt can add to it.
func (e *HandlerState) Reserved(now time.Time) progress.Record {
	r := e.Record()
	r.Stopped, r.Delayed, r.Message = nil, &now, &longest
	return r
}

// Stored is true if the object has a record of the handler.
func (e *HandlerState) Stored() bool { return e.loaded != nil }

// Tried is true if the handler was called before, or has a record all the same: there is a place for it already.
func (e *HandlerState) Tried() bool { return e.Retries > 0 || e.loaded != nil || e.Awaited != nil }

// Naming is how many bytes a record takes to name a sub-handler that succeeded. Levels is how many records refer to it
// if it has a record of its own, in how many bytes each.
func (e *HandlerState) Naming() (bytes, levels, each int) {
	return e.own + len(`"",`), e.level, len(e.ID) + len(`"",`)
}

// distinct are the texts sorted, once each; they are not modified.
func distinct(texts []string) []string {
	if len(texts) == 0 || isDistinct(texts) {
		return texts
	}
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return slices.Compact(texts)
}

func isDistinct(texts []string) bool {
	for i := 1; i < len(texts); i++ {
		if texts[i-1] >= texts[i] {
			return false
		}
	}
	return true
}

// Detach lets go of the object: Fetch reads nothing any more.
func (s *State) Detach() {
	s.ReadAgain()
	s.read = func(string) (*progress.Record, error) { return nil, nil }
}

// Fetch returns the record that the object has of any handler; nil without one. It reads each record once.
func (s *State) Fetch(id string) (*progress.Record, error) {
	if e := s.byID[id]; e != nil {
		return e.loaded, nil
	}
	record, known := s.others[id]
	if known || slices.Contains(s.owned, id) {
		return record, nil
	}
	record, err := s.read(id)
	if err == nil {
		if s.others == nil {
			s.others = map[string]*progress.Record{}
		}
		s.others[id] = record
	}
	return record, err
}
