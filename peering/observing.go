package peering

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ObserveObject evaluates an object from a watch or a list, and sets the gate.
func (m *membership) ObserveObject(object map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now() // not before, because the lock may be held for long
	m.evaluateObject(object, now)
	m.applyDecision(now)
}

// evaluateObject evaluates the records of the object; the caller holds the lock. Objects with other names are ignored.
// Of an object that is older than the newest one, only the last content of removed records is used.
func (m *membership) evaluateObject(object map[string]any, now time.Time) {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["name"] != m.state.member.Name {
		return
	}
	records, err := DecodeRecords(object, now)
	version, _ := metadata["resourceVersion"].(string)
	if isOlder(version, m.state.version) {
		m.state.peers.applyOlder(records, version)
		return
	}
	m.reportMalformed(err)
	m.reportRemoved(m.state.storeObservation(records, version, now))
}

// ObserveAbsence makes the loop write the record, because the object seems to be missing. The answer to that write
// decides whether it is: a watch may be late.
func (m *membership) ObserveAbsence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.record == recordPublished {
		m.state.isMissing = true
		m.wakeLoop()
	}
}

// isOlder reports whether a version is older than another one. Versions that cannot be compared are not older.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// applyDecision applies the current decision to the gate; the caller holds the lock.
func (m *membership) applyDecision(now time.Time) {
	s := &m.state
	if s.hasLeft {
		return
	}
	before := s.record
	s.step = s.nextStep(now)
	if s.record == recordExpired && before != recordExpired {
		m.reportExpired()
	}
	switch s.step {
	case keepGate:
	// An operator without a record acts without a limit, as peers do not see it. Otherwise, the end of the record has
	// been passed to the gate when it was confirmed.
	case openGate:
		if s.record == recordUnavailable {
			m.gate.AllowWritesUntil(time.Time{})
		}
		s.isClosed, s.actsAlone = false, s.record == recordUnavailable
		m.reportResumed()
		m.gate.Set(false)
	default:
		s.isClosed = true
		m.gate.Set(true)
		m.reportClosed(now)
	}
	m.setAlarm(now)
	// The gate has its state before the callback reports that the demands are known.
	if !s.isAnswered && s.hasSettled(now) {
		if s.isAnswered = true; s.member.OnAnswer != nil {
			s.member.OnAnswer()
		}
	}
	m.wakeLoop()
}

// setAlarm schedules the next decision that depends on time alone. The loop cannot do that: the gate must close in time
// even while a request is running.
func (m *membership) setAlarm(now time.Time) {
	if m.decisionTimer != nil {
		m.decisionTimer.Stop()
	}
	if next := m.state.nextDecision(now); !next.IsZero() {
		m.decisionTimer = time.AfterFunc(time.Until(next), func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.applyDecision(time.Now())
		})
	}
}

// wakeLoop makes the loop check for due requests. It does not block: one pending signal is enough, as the loop checks
// everything.
func (m *membership) wakeLoop() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
