package peering

import "time"

// setAlarm has the decision made again when it may be another one, if nothing happens until then.
func (m *Membership) setAlarm(now time.Time) {
	if !m.member.ours() {
		return
	}
	var next time.Time
	earlier := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if m.standing == known {
		earlier(m.until)
		earlier(m.joined.Add(settling))
		earlier(m.joined.Add(m.member.Wait))
	}
	if m.closed {
		for _, record := range m.sightings.records(now) {
			earlier(record.Expires())
		}
	}
	if m.alarm != nil {
		m.alarm.Stop()
	}
	if !next.IsZero() {
		m.alarm = time.AfterFunc(next.Sub(now), m.ring)
	}
}

// ring is the alarm.
func (m *Membership) ring() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.decide(time.Now())
}
