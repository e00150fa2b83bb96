package changes

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// reserveForNew reserves room for new sub-handlers in the order of declaration. It logs how many do not fit.
func (s *subHandlers) reserveForNew(ctx context.Context, all []subHandler) error {
	// The first run in a pass measures the room.
	if s.runner.budget == nil {
		if err := s.runner.measureBudget(); err != nil {
			return err
		}
	}
	// After the first one that does not fit, all later ones are postponed, so that the order is kept.
	full := false
	s.uncalledStates = nil
	for _, sub := range all {
		if full || !sub.state.Postponed || sub.state.IsFinished() {
			continue
		}
		sub.state.Postponed = false
		ok, err := s.reserveForSuccess(sub.state)
		if err != nil {
			return err
		}
		full = !ok
	}
	if full {
		s.logTooMany(ctx, s.postponedError(all))
	}
	return nil
}

// reserveForSuccess reserves the room for a success, provided that the largest outcome would fit, too.
func (s *subHandlers) reserveForSuccess(h *execution.HandlerState) (bool, error) {
	budget := s.runner.budget
	most, err := budget.largestSize(h)
	if err != nil {
		return false, err
	}
	wanted, err := budget.expectedSize(h)
	if err != nil {
		return false, err
	}
	// A first call needs room for the largest outcome, not only for a success.
	if h.Postponed = !budget.canReserve(h.ID, most); !h.Postponed {
		budget.setReservation(h.ID, wanted)
		s.uncalledStates = append(s.uncalledStates, h)
	}
	return !h.Postponed, nil
}

// reserveForCall reserves the room for the largest outcome of a call. If necessary, it takes the room of the last
// sub-handlers that wait for their first call. If that is not enough, a first call waits until others leave room. A
// sub-handler with a record is called anyway, but its error text cannot grow.
func (s *subHandlers) reserveForCall(h *execution.HandlerState) (bool, error) {
	if h.Postponed {
		return false, nil
	}
	budget := s.runner.budget
	most, err := budget.largestSize(h)
	if err != nil {
		return false, err
	}
	// Outcomes since the last measurement can have freed room. Measure at most once per run, as it visits all
	// sub-handlers.
	if !budget.canReserve(h.ID, most) && budget.hasNewReservations && !s.remeasured {
		s.remeasured = true
		if err := budget.measureRoom(); err != nil {
			return false, err
		}
	}
	s.postponeLast(h, most)
	// Without room for a longer text, the error text of a retry must not grow.
	h.IsMessageCapped = !budget.canReserve(h.ID, most)
	if h.IsMessageCapped && !h.HasProgress() {
		h.Postponed = true
		budget.setReservation(h.ID, size{})
		return false, nil
	}
	// Any outcome of the call fits from now on.
	budget.running[h.ID] = true
	budget.setReservation(h.ID, most)
	return true, nil
}

// postponeLast takes the room of waiting sub-handlers, the last one first, until there is enough.
func (s *subHandlers) postponeLast(h *execution.HandlerState, enough size) {
	budget := s.runner.budget
	for len(s.uncalledStates) > 0 && !budget.canReserve(h.ID, enough) {
		last := s.uncalledStates[len(s.uncalledStates)-1]
		s.uncalledStates = s.uncalledStates[:len(s.uncalledStates)-1]
		// A sub-handler with progress keeps its room.
		if last != h && !last.HasProgress() {
			last.Postponed = true
			budget.setReservation(last.ID, size{})
		}
	}
}

// returnUnused releases the room that the outcome of a call does not need.
func (s *subHandlers) returnUnused(h *execution.HandlerState) error {
	budget := s.runner.budget
	delete(budget.running, h.ID)
	taken, err := budget.sizeOf(h)
	if err == nil {
		budget.setReservation(h.ID, taken)
	}
	return err
}

// anyFits reports whether finished sub-handlers have left room for any postponed one.
func (s *subHandlers) anyFits(all []subHandler) (bool, error) {
	if err := s.runner.measureBudget(); err != nil {
		return false, err
	}
	for _, sub := range all {
		if !sub.state.Postponed || sub.state.IsFinished() {
			continue
		}
		most, err := s.runner.budget.largestSize(sub.state)
		if err != nil {
			return false, err
		}
		if s.runner.budget.canReserve(sub.state.ID, most) {
			return true, nil
		}
	}
	return false, nil
}

// postponedError returns a permanent error if there is no room for some sub-handlers, as a retry would not find more of
// it; nil otherwise. Those that fit have been called.
func (s *subHandlers) postponedError(all []subHandler) error {
	postponed := 0
	for _, sub := range all {
		if sub.state.Postponed && !sub.state.IsFinished() {
			postponed++
		}
	}
	if postponed == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	declared := len(s.formerIDsByID)
	return &permanentError{fmt.Sprintf("%d of %d sub-handlers are not called: the object has room for the progress of "+
		"%d", postponed, declared, declared-postponed)}
}

// logTooMany logs the error once per attempt.
func (s *subHandlers) logTooMany(ctx context.Context, err error) {
	if err != nil && !s.isShortageLogged {
		s.isShortageLogged = true
		logf.FromContext(ctx).Error(
			err, "Handler has too many sub-handlers; calling those whose progress fits on the object",
		)
	}
}
