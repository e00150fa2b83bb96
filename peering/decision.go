package peering

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// decide opens or closes the gate by what is known now.
func (m *Membership) decide(now time.Time) {
	if m.left {
		return
	}
	if m.standing != alone || !m.member.KopfRules { // Kopf's rules never end the records of an object that is gone
		m.judge(now)
	}
	if m.member.ours() && m.standing == known {
		m.enter(now)
	}
	switch paused := m.verdict.Paused(); {
	case paused:
		m.pause()
	case m.member.ours() && (m.standing == lapsed || m.standing == alone && m.member.Mandatory):
		m.opening = false
		m.shut()
	case m.closed || !m.member.ours():
		m.begin(now)
	}
	m.setAlarm(now)
	if m.member.ours() && m.standing == known && !m.missing && !now.Before(m.joined.Add(settling)) {
		m.settle()
	}
}

// judge judges what was heard last.
func (m *Membership) judge(now time.Time) {
	m.verdict = Judge(m.member.Self, m.sightings.records(now), now)
}

// enter is for a record that is there. Who has acted without one stops if a peer has done so, too.
func (m *Membership) enter(now time.Time) {
	if !m.until.After(now) {
		m.lapse()
	}
	if m.acting && !m.closed && len(m.awaited(now)) > 0 {
		m.shut()
	}
	m.acting = false
}

// lapse is when the others may take the operator for dead.
func (m *Membership) lapse() {
	m.standing, m.joined = lapsed, time.Time{}
	logging.Warn(m.log, "Pausing operations, as the peering record could not be renewed in time")
}

// pause closes the gate for the sake of peers.
func (m *Membership) pause() {
	m.opening = false
	if m.shut(); !m.repeated("paused", "for peers") {
		m.log.Info("Pausing operations in favour of peers", "peers", m.verdict.Blockers)
		m.notify(m.verdict.Blockers)
	}
	if equals := m.verdict.Equals; len(equals) > 0 && !m.repeated("equals", "of "+equals[0]) {
		m.warnEquals()
	}
	if m.told > 0 {
		m.nudge()
	}
}

func (m *Membership) notify(peers []string) {
	if m.member.Notify != nil {
		m.member.Notify(peers)
	}
}

func (m *Membership) warnEquals() {
	if m.member.Self.Elects && !m.kopfAmongEquals() {
		return
	}
	logging.Warn(m.log, "Operators have the same priority, so all of them pause; give them different ones",
		"peers", m.verdict.Equals, "priority", m.member.Self.Priority)
}

// kopfAmongEquals tells whether there are peers of the same priority that cannot be elected.
func (m *Membership) kopfAmongEquals() bool {
	return slices.ContainsFunc(m.verdict.Equals, func(identity string) bool {
		return m.sightings.all[identity].record.Runtime == ""
	})
}

// begin opens the gate, or does what is needed for that.
func (m *Membership) begin(now time.Time) {
	if m.member.ours() {
		if m.standing == unanswered {
			return
		}
		m.opening = true
		if m.standing == known && m.told == 0 {
			m.nudge()
			return
		}
		if m.standing == known && now.Before(m.joined.Add(settling)) {
			return
		}
		if peers := m.awaited(now); len(peers) > 0 {
			if !m.repeated("awaited", "peers") {
				m.log.Info("Waiting until peers of lower rank are at rest", "peers", peers)
			}
			return
		}
	}
	if m.said["paused"] != "" {
		m.notify(nil)
	}
	if m.said["paused"] != "" || m.said["awaited"] != "" {
		m.log.Info("Resuming operations after the pause")
	}
	m.said["paused"], m.said["equals"], m.said["awaited"] = "", "", ""
	if m.standing == alone {
		m.gate.AllowWritesUntil(time.Time{})
	}
	m.opening, m.closed, m.acting = false, false, m.standing == alone
	m.gate.Set(false)
}

// awaited are the peers that may still act, although they must not any more.
func (m *Membership) awaited(now time.Time) []string {
	peers := m.verdict.Acting
	if m.standing == known && now.Before(m.joined.Add(m.member.Wait)) {
		peers = slices.Concat(peers, m.verdict.Untold)
	}
	return peers
}

// shut closes the gate.
func (m *Membership) shut() {
	m.closed = true
	m.gate.Set(true)
}

// complain logs what is wrong with the records of others, once.
func (m *Membership) complain(err error) {
	if err == nil {
		m.said["malformed"] = ""
		return
	}
	if !m.repeated("malformed", err.Error()) {
		m.log.Error(err, "Ignored malformed peering records")
	}
}

// repeated tells whether something was said already about a matter.
func (m *Membership) repeated(matter, text string) bool {
	before := m.said[matter]
	m.said[matter] = text
	return before == text
}

// logger is that of the context, with the peering.
func (m *Membership) logger(ctx context.Context) logr.Logger {
	return logf.FromContext(ctx).WithValues("peering", m.member.Name)
}
