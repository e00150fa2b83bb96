package peering

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Observe takes the object from a watch, and sets the gate.
func (m *Membership) Observe(object map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now() // not before, because the lock may be held for long
	m.observe(object, now)
	m.decide(now)
}

// observe takes the records of the object. Other objects are ignored, and so is one that is older than the newest one,
// except for the last content of removed records. The lock is held.
func (m *Membership) observe(object map[string]any, now time.Time) {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["name"] != m.state.member.Name {
		return
	}
	records, err := Decode(object, now)
	version, _ := metadata["resourceVersion"].(string)
	if isOlder(version, m.state.version) {
		m.state.peers.applyOlder(records, version)
		return
	}
	m.reportMalformed(err)
	m.reportRemoved(m.state.observe(records, version, now))
}

// ObserveAbsence writes the record, because the object seems to be missing. The answer decides.
func (m *Membership) ObserveAbsence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.record == recordPublished {
		m.state.isMissing = true
		m.wakeLoop()
	}
}

// isOlder reports whether a version is older than another one, as far as they can be compared.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// decide applies the decision to the gate. The lock is held.
func (m *Membership) decide(now time.Time) {
	s := &m.state
	if s.hasLeft {
		return
	}
	before := s.record
	s.step = s.decide(now)
	if s.record == recordExpired && before != recordExpired {
		m.reportExpired()
	}
	switch s.step {
	case keepGate:
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
	if !s.isAnswered && s.hasSettled(now) {
		if s.isAnswered = true; s.member.OnAnswer != nil {
			s.member.OnAnswer()
		}
	}
	m.wakeLoop()
}

// setAlarm repeats the decision when it can change by time alone. The loop cannot do that: the gate must close in time
// while a request is running.
func (m *Membership) setAlarm(now time.Time) {
	if m.alarm != nil {
		m.alarm.Stop()
	}
	if next := m.state.nextDecision(now); !next.IsZero() {
		m.alarm = time.AfterFunc(time.Until(next), func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.decide(time.Now())
		})
	}
}

// wakeLoop lets the loop look for work.
func (m *Membership) wakeLoop() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
