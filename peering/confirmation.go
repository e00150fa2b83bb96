package peering

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// margin is how long before its end a record counts as lost.
const margin = 2 * time.Second

// written heeds what has become of a record.
func (m *Membership) written(ctx context.Context, record Record, sent time.Time, object map[string]any, err error) {
	told := errors.Is(ctx.Err(), context.Canceled) // whoever has ended it knows
	switch {
	case m.member.ours():
		m.confirm(ctx, record, sent, err, told)
	case err != nil && !told:
		m.logger(ctx).Error(err, "Failed to keep the peering record alive")
	}
	if placeless(err) {
		m.mu.Lock()
		m.settle()
		m.mu.Unlock()
	}
	if err == nil && m.member.ours() {
		m.Hear(ctx, object)
	}
}

// confirm notes how far the others know of the operator.
func (m *Membership) confirm(ctx context.Context, record Record, sent time.Time, err error, told bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = m.logger(ctx)
	now := time.Now()
	if end := m.end(sent); err == nil && end.After(now) {
		if m.standing != known {
			m.joined = sent
		}
		m.standing, m.until, m.missing = known, end, false
		m.told, m.said["alone"], m.said["failed"] = *record.Busy, "", ""
		m.gate.AllowWritesUntil(end)
		return // the object follows
	}
	if err != nil && !m.left && !told {
		m.fail(err)
	}
	m.decide(now)
}

// end is when a record that was sent counts as lost.
func (m *Membership) end(sent time.Time) time.Time {
	lifetime := m.member.lifetime()
	return sent.Add(max(lifetime-margin, lifetime/2))
}

// fail notes that a record could not be written.
func (m *Membership) fail(err error) {
	if !placeless(err) {
		if !m.repeated("failed", err.Error()) {
			m.log.Error(err, "Failed to keep the peering record alive")
		}
		return
	}
	m.standing, m.missing, m.until, m.joined = alone, false, time.Time{}, time.Time{}
	if !m.member.Mandatory && !m.verdict.Paused() {
		m.gate.AllowWritesUntil(time.Time{})
	}
	if m.repeated("alone", err.Error()) {
		return
	}
	switch {
	case m.member.Mandatory:
		logging.Warn(m.log, "Waiting for a peering that can be used, as it is mandatory", "reason", err.Error())
	case m.verdict.Paused():
		until := "it is back"
		if !m.member.KopfRules {
			until = "it is back, or the records of its peers have ended"
		}
		logging.Warn(m.log, "Peering cannot be used any more; the operator stays paused", "until", until,
			"reason", err.Error())
	case apierrors.IsNotFound(err):
		m.log.Info("There is no peering object; the operator acts without regard to others until there is one")
	default:
		m.log.Info("Peering cannot be used; the operator acts without regard to others until it can",
			"reason", err.Error())
	}
}
