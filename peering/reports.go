package peering

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// wasLogged stores the state of a matter, and reports whether it was the same before. So each state is logged once, and
// not with every renewal.
func (m *membership) wasLogged(matter, text string) bool {
	before := m.logged[matter]
	m.logged[matter] = text
	return before == text
}

// callNotify calls the Notify function if there is one.
func (m *membership) callNotify(peers []string) {
	if m.state.member.Notify != nil {
		m.state.member.Notify(peers)
	}
}

// reportClosed logs why the gate is closed.
func (m *membership) reportClosed(now time.Time) {
	verdict := m.state.verdict
	switch m.state.step {
	case pauseForPeers:
		if !m.wasLogged("paused", "for peers") {
			m.log.Info("Pausing operations in favour of peers", "peers", verdict.Blockers)
			m.callNotify(verdict.Blockers)
		}
		if equals := verdict.EqualPeers; len(equals) > 0 && !m.wasLogged("equals", "of "+equals[0]) {
			m.warnEquals()
		}
	case awaitPeers:
		if !m.wasLogged("awaited", "peers") {
			m.log.Info("Waiting until peers of lower rank are idle", "peers", m.state.awaitedPeers(now))
		}
	}
}

// warnEquals warns that peers of the same priority pause as well. It does not warn if the election by identity decides
// which of them acts; that needs peers of this framework only.
func (m *membership) warnEquals() {
	hasKopf := slices.ContainsFunc(m.state.verdict.EqualPeers, func(identity string) bool {
		return m.state.peers.entries[identity].record.Runtime == ""
	})
	if self := m.state.member.Self; !self.Elects || hasKopf {
		logging.Warn(m.log, "Operators have the same priority, so all of them pause; give them different ones",
			"peers", m.state.verdict.EqualPeers, "priority", self.Priority)
	}
}

// reportResumed logs that the gate opens after a pause.
func (m *membership) reportResumed() {
	// Only a pause for peers has been notified, not a mere wait for idle peers.
	if m.logged["paused"] != "" {
		m.callNotify(nil)
	}
	if m.logged["paused"] != "" || m.logged["awaited"] != "" {
		m.log.Info("Resuming operations after the pause")
	}
	m.logged["paused"], m.logged["equals"], m.logged["awaited"] = "", "", ""
}

// reportExpired logs that the gate closes because the record was not renewed in time.
func (m *membership) reportExpired() {
	logging.Warn(m.log, "Pausing operations, as the peering record could not be renewed in time")
}

// reportRemoved logs which records another client has removed.
func (m *membership) reportRemoved(removed []string) {
	if len(removed) > 0 && !m.state.hasLeft {
		logging.Warn(m.log, "Peer records were removed by someone else; treating these peers as alive until their "+
			"lifetime ends", "peers", removed)
	}
}

// reportMalformed logs the errors of malformed records.
func (m *membership) reportMalformed(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if !m.wasLogged("malformed", text) && err != nil {
		m.log.Error(err, "Ignored malformed peering records")
	}
}

// reportFailed logs an error of writing the record that can be temporary. The write is retried.
func (m *membership) reportFailed(err error) {
	if !m.wasLogged("failed", err.Error()) {
		m.log.Error(err, "Failed to keep the peering record alive")
	}
}

// reportUnavailable logs that the record cannot be stored, and whether the operator waits, stays paused, or acts alone.
func (m *membership) reportUnavailable(err error) {
	if m.wasLogged("alone", err.Error()) {
		return
	}
	switch member := m.state.member; {
	case member.Mandatory:
		logging.Warn(m.log, "Waiting for a peering that can be used, as it is mandatory", "reason", err.Error())
	// With Kopf's rules, the last known records are kept as they are; otherwise they expire.
	case m.state.verdict.IsPaused():
		until := "it is back"
		if !member.KopfRules {
			until = "it is back, or the records of its peers have ended"
		}
		logging.Warn(m.log, "Peering cannot be used any more; the operator stays paused", "until", until,
			"reason", err.Error())
	case apierrors.IsNotFound(err) && member.LeaseDecides:
		m.log.Info("There is no peering object; a Lease decides which process acts until there is one")
	case member.LeaseDecides:
		m.log.Info("Peering cannot be used; a Lease decides which process acts until it can", "reason", err.Error())
	case apierrors.IsNotFound(err):
		m.log.Info("There is no peering object; the operator acts without regard to others until there is one")
	default:
		m.log.Info("Peering cannot be used; the operator acts without regard to others until it can",
			"reason", err.Error())
	}
}
