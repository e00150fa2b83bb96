package changes

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// crowdedError is what a handler fails with for good that has more sub-handlers than the object can remember. Those
// that fit have been called.
type crowdedError struct{ declared, fitting int }

// Error names both numbers.
func (e *crowdedError) Error() string {
	return fmt.Sprintf(
		"%d of %d sub-handlers are not called: the object has room for the progress of %d", e.declared-e.fitting,
		e.declared, e.fitting,
	)
}

// Permanent is true: another try would find no more room.
func (e *crowdedError) Permanent() bool { return true }

// admit finds room for those that were not called yet, in the order of declaration, and says for how many there is
// none.
func (s *subs) admit(ctx context.Context, all []member) error {
	if err := s.ensureMeasured(); err != nil {
		return err
	}
	full := false
	s.queue = nil
	for _, m := range all {
		if !m.entry.Postponed || m.entry.Finished() {
			continue
		}
		m.entry.Postponed = full
		if full {
			continue
		}
		ok, err := s.admitOne(m.entry)
		if err != nil {
			return err
		}
		full = !ok
	}
	if full {
		s.tell(ctx, s.crowded(all))
	}
	return nil
}

// admitOne sets room apart for a success; while there is room for anything that may come of it instead.
func (s *subs) admitOne(e *execution.HandlerState) (bool, error) {
	most, err := s.most(e)
	if err != nil {
		return false, err
	}
	wanted, err := s.expected(e)
	if err != nil {
		return false, err
	}
	if e.Postponed = !s.room.holds(e.ID, most); !e.Postponed {
		s.room.take(e.ID, wanted)
		s.queue = append(s.queue, e)
	}
	return !e.Postponed, nil
}

func (s *subs) ensureMeasured() error {
	if s.room != nil {
		return nil
	}
	return s.measure()
}

// begun sets room apart for all that may come of a call, at the cost of the last of those that wait for their first
// one. Without, a first call waits until others have left some. Who has a record is called in any case, and says no
// more than before.
func (s *subs) begun(e *execution.HandlerState) (bool, error) {
	if e.Postponed {
		return false, nil
	}
	most, err := s.most(e)
	if err != nil {
		return false, err
	}
	if !s.room.holds(e.ID, most) && s.room.changed && !s.again {
		s.again = true
		if err := s.measure(); err != nil {
			return false, err
		}
	}
	for len(s.queue) > 0 && !s.room.holds(e.ID, most) {
		last := s.queue[len(s.queue)-1]
		s.queue = s.queue[:len(s.queue)-1]
		if last != e && !last.Tried() && !s.room.running[last.ID] {
			last.Postponed = true
			s.room.take(last.ID, weight{})
		}
	}
	e.Terse = !s.room.holds(e.ID, most)
	if e.Terse && !e.Tried() {
		e.Postponed = true
		s.room.take(e.ID, weight{})
		return false, nil
	}
	s.room.running[e.ID] = true
	s.room.take(e.ID, most)
	return true, nil
}

// ended leaves what the outcome does not need to others.
func (s *subs) ended(e *execution.HandlerState) error {
	delete(s.room.running, e.ID)
	taken, err := s.weightOf(e)
	if err == nil {
		s.room.take(e.ID, taken)
	}
	return err
}

// crowded counts those for whom there is no room; nil if there are none.
func (s *subs) crowded(all []member) error {
	waiting := 0
	for _, m := range all {
		if m.entry.Postponed && !m.entry.Finished() {
			waiting++
		}
	}
	if waiting == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &crowdedError{declared: len(s.ids), fitting: len(s.ids) - waiting}
}

// tell says it once an attempt.
func (s *subs) tell(ctx context.Context, err error) {
	if err != nil && !s.told {
		s.told = true
		logf.FromContext(ctx).Error(
			err, "There are more sub-handlers than the object can remember; the others are called",
		)
	}
}
