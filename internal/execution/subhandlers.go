package execution

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// subMessageLimit is the number of JSON bytes of a sub-handler's error text in its record: there can be hundreds of
// sub-handlers. The log has the whole text.
const subMessageLimit = 256

// longestMessage is the largest text that a record of a sub-handler can have, with its ellipsis as JSON.
var longestMessage = strings.Repeat("x", subMessageLimit+len(`\u2026`))

// declaredSubs are the sub-handlers of one handler that were declared in this process.
type declaredSubs struct {
	directSubs []*HandlerState          // the handler's own sub-handlers
	byID       map[string]*HandlerState // those of all levels, by their ids
}

// RestoreSub restores the state of a sub-handler from the object, or makes a new one. The ancestors are ids, the
// nearest one last: each refers to the sub-handler, so that a purge of the ancestor removes its record. A new
// sub-handler is postponed until the caller has reserved room for its record.
func (s *State) RestoreSub(h *handlers.Handler, ancestors []string, now time.Time) (*HandlerState, error) {
	e := s.byID[h.ID]
	if e == nil {
		parent := s.byID[ancestors[len(ancestors)-1]]
		var err error
		if e, err = s.loadSub(h.ID, h.FormerIDs, parent, now); err != nil {
			return nil, err
		}
		e.level, e.relativeIDLength, e.HasTimeout = len(ancestors), len(parent.relativeID(h.ID)),
			h.Policy.Timeout != nil
		s.addState(e)
	}
	for i, ancestor := range ancestors {
		if a := s.byID[ancestor]; a != nil {
			a.addDeclaredSub(e, i == len(ancestors)-1)
		}
	}
	return e, nil
}

// KnownSub returns the state of a sub-handler, whether or not it is declared: the one of [State.RestoreSub], or the
// state that the object has under this id or a former one. It can be an empty state.
func (s *State) KnownSub(id string, former []string, parent string, now time.Time) (*HandlerState, error) {
	if e := s.byID[id]; e != nil {
		return e, nil
	}
	return s.loadSub(id, former, s.byID[parent], now)
}

// EndWaiting ends the wait for other sub-handlers. The timeout of a sub-handler that was not called yet begins now.
func (e *HandlerState) EndWaiting(now time.Time) {
	if e.Waiting && !e.HasProgress() {
		e.Started = now
	}
	e.Waiting = false
}

// loadSub makes the state of a sub-handler from its parent's list of successes, or from its record. The present id
// comes first, then the former ones.
func (s *State) loadSub(
	id string, former []string, parent *HandlerState, now time.Time,
) (*HandlerState, error) {
	e := newHandlerState(id, s.Purpose, now)
	for _, known := range append([]string{id}, former...) {
		if parent.hasSucceeded(known) {
			// The record only has the name, so one attempt is assumed, and the end is now.
			e.Retries, e.Success, e.Stopped, e.isNamedByParent = 1, true, &now, true
			break
		}
		record, err := s.FetchRecord(known)
		if err != nil {
			return nil, fmt.Errorf("reading the progress of sub-handler %q: %w", known, err)
		}
		if record != nil {
			e = fromRecord(id, record, now)
			e.moveToPurpose(s.Purpose)
			break
		}
	}
	e.formerIDs = former
	e.Active, e.isSub, e.compact = true, true, s.Compact
	e.Postponed = e.Retries == 0 && e.storedRecord == nil
	e.isNamedByParent = e.isNamedByParent || e.compact && e.Success
	// Only sub-handlers without progress wait for room: others already occupy theirs.
	return e, nil
}

// hasSucceeded reports whether the record of the handler lists the sub-handler as succeeded.
// The search needs sorted ids, as fromRecord makes them.
func (e *HandlerState) hasSucceeded(id string) bool {
	_, found := slices.BinarySearch(e.Succeeded, e.relativeID(id))
	return found
}

// addDeclaredSub adds a sub-handler, or one of a sub-handler, to the handler's parts.
func (e *HandlerState) addDeclaredSub(met *HandlerState, direct bool) {
	if e.declaredSubs == nil {
		e.declaredSubs = &declaredSubs{byID: map[string]*HandlerState{}}
	}
	if e.declaredSubs.byID[met.ID] != nil {
		return
	}
	e.declaredSubs.byID[met.ID] = met
	if direct {
		e.declaredSubs.directSubs = append(e.declaredSubs.directSubs, met)
	}
}

// IsSub reports whether the handler is a sub-handler.
func (e *HandlerState) IsSub() bool { return e.isSub }

// relativeID returns the id without the prefix of the handler.
func (e *HandlerState) relativeID(id string) string {
	return strings.TrimPrefix(id, handlers.SubID(e.ID, ""))
}

// LargestRecord returns the record with the largest additions that the next attempt can make.
func (e *HandlerState) LargestRecord(now time.Time) progress.Record {
	r := e.AsRecord()
	r.Stopped, r.Delayed, r.Message = nil, &now, &longestMessage
	return r
}

// IsStored reports whether the object has a record of the handler.
func (e *HandlerState) IsStored() bool { return e.storedRecord != nil }

// HasProgress reports whether the handler was called, or has a record for another reason: it already has room on the
// object.
func (e *HandlerState) HasProgress() bool {
	return e.Retries > 0 || e.storedRecord != nil || e.Awaited != nil
}

// ReferenceSizes returns the number of bytes that name a succeeded sub-handler in the record of its parent. A
// sub-handler with its own record is referred to by the records of all levels above it, with each bytes.
func (e *HandlerState) ReferenceSizes() (bytes, levels, each int) {
	return e.relativeIDLength + len(`"",`), e.level, len(e.ID) + len(`"",`)
}

// sortedDistinct returns the texts sorted, without duplicates. The argument is not modified.
func sortedDistinct(texts []string) []string {
	if len(texts) == 0 || isDistinct(texts) {
		return texts
	}
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// isDistinct reports whether the texts are sorted and unique, which is the usual case and avoids the copy.
func isDistinct(texts []string) bool {
	for i := 1; i < len(texts); i++ {
		if texts[i-1] >= texts[i] {
			return false
		}
	}
	return true
}

// DetachObject drops the reference to the object, to free its memory. [State.FetchRecord] then finds no more records.
func (s *State) DetachObject() {
	s.ForgetRecords()
	s.readRecord = func(string) (*progress.Record, error) { return nil, nil }
}

// FetchRecord returns the record of any handler on the object; nil if there is none. It reads each record once.
func (s *State) FetchRecord(id string) (*progress.Record, error) {
	if e := s.byID[id]; e != nil {
		return e.storedRecord, nil
	}
	record, known := s.otherRecords[id]
	// owned records were read by [RestoreState]: without a state, there is none
	if known || slices.Contains(s.ownedIDs, id) {
		return record, nil
	}
	record, err := s.readRecord(id)
	if err == nil {
		if s.otherRecords == nil {
			s.otherRecords = map[string]*progress.Record{}
		}
		s.otherRecords[id] = record
	}
	return record, err
}
