package peering

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// leavingTimeout is how long the removal of the record may take. It delays the end of the process.
const leavingTimeout = 5 * time.Second

// KopfJitter returns how long before its end Kopf renews a record: 5 to 10 seconds, at random. The randomness spreads
// the requests of operators that start together.
func KopfJitter() time.Duration {
	return time.Duration(5+rand.IntN(6)) * time.Second //nolint:gosec // no secret
}

// Run keeps the record alive and removes the expired records of others until the context ends. It then removes the
// record.
func (m *membership) Run(ctx context.Context) {
	defer m.removals.Wait()
	for ctx.Err() == nil {
		m.processDueWork(ctx)
	}
	m.leavePeering(context.WithoutCancel(ctx))
}

// processDueWork makes the one request that is due, or waits until the next one is. Writing the own record has
// priority: peers treat the operator as dead if it is late. A removal after a write uses the version of its answer, so
// the two do not conflict.
func (m *membership) processDueWork(ctx context.Context) {
	m.mu.Lock()
	s, now := &m.state, time.Now()
	// The decision is made under the lock, the request without it: observations must not wait for the API server.
	write, orIdle := s.nextWrite(now)
	removes, removal := len(s.expired) > 0 && !s.isRemoving, s.nextRemoval
	m.mu.Unlock()
	switch {
	case !write.After(now):
		m.renewRecord(ctx)
	case removes && !removal.After(now):
		m.startRemoval(ctx)
	default:
		if removes && removal.Before(write) {
			write = removal
		}
		m.waitForWork(ctx, write.Sub(now), orIdle)
	}
}

// waitForWork waits until the limit, or until an observation or a decision wakes the loop. With orIdle, it also returns
// when all attempts have ended.
func (m *membership) waitForWork(ctx context.Context, limit time.Duration, orIdle bool) {
	var idle <-chan struct{}
	if orIdle && m.state.member.Idle != nil {
		idle = m.state.member.Idle()
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-m.wake:
	case <-idle:
		time.Sleep(time.Millisecond) // an attempt that has ended may be counted a moment longer
	}
}

// renewRecord writes the record and logs that, unless keep-alives are omitted from the log. Errors have been reported
// already.
func (m *membership) renewRecord(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.requestTimeout())
	defer cancel()
	if err := m.writeOwnRecord(ctx); err == nil && !m.state.member.Stealth {
		m.log.V(1).Info("Kept the peering record alive")
	}
}

// requestTimeout returns how long one request may take. It leaves time for another request before the record is lost.
func (m *membership) requestTimeout() time.Duration {
	return max(retryDelay, min(m.state.member.recordLifetime()/6, 10*time.Second))
}

// startRemoval removes expired records in the background, one request at a time. The loop does not wait for the answer,
// which may take long: until then, it would neither renew the own record nor write it again after a removal, and peers
// could begin.
func (m *membership) startRemoval(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.isRemoving = true
	m.removals.Go(func() {
		if err := m.removeExpired(ctx); err != nil && ctx.Err() == nil {
			m.log.V(1).Info("Failed to write about peers", "reason", err.Error())
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.state.isRemoving = false
		m.wakeLoop()
	})
}

// removeExpired removes the expired records of others, unless the object has changed since. A process that was
// suspended may hold a stale object and would otherwise remove the records of live peers.
func (m *membership) removeExpired(ctx context.Context) error {
	m.mu.Lock()
	expired, version := m.state.expired, m.state.version
	// They are removed by one request only. If that fails, the next observation finds them again.
	m.state.expired = nil
	m.mu.Unlock()
	if len(expired) == 0 {
		return nil // a newer object does not have them
	}
	status := make(map[string]any, len(expired))
	for _, identity := range expired {
		// A null in a merge-patch removes the key.
		status[identity] = nil
	}
	limited, cancel := context.WithTimeout(ctx, m.requestTimeout())
	defer cancel()
	if _, err := m.object.PatchStatus(limited, status, version); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.state.nextRemoval = time.Now().Add(retryDelay) // the next object may come at once
		return fmt.Errorf("removing expired records from peering %q: %w", m.state.member.Name, err)
	}
	return nil
}

// leavePeering closes the gate, waits for running attempts, and removes the record.
//
// Before the removal, the record reports that the operator is idle, because peers ignore the removal of a record that
// reports attempts. This is written even if it was reported before: the answer may have been lost.
func (m *membership) leavePeering(ctx context.Context) {
	m.mu.Lock()
	s := &m.state
	// From here on, decisions do not open the gate again.
	s.hasLeft, s.isClosed = true, true
	m.gate.Set(true)
	if m.decisionTimer != nil {
		m.decisionTimer.Stop()
	}
	hasPlace := s.record != recordUnavailable
	m.mu.Unlock()
	// The record cannot be stored, so it need not be removed either.
	if !hasPlace {
		return
	}
	limited, cancel := context.WithTimeout(ctx, s.member.recordLifetime())
	defer cancel()
	// The record is renewed while attempts run: peers must not start before they have ended.
	for s.member.runningAttempts() > 0 {
		if limited.Err() != nil {
			return // the record expires by itself
		}
		m.processDueWork(limited)
	}
	ctx, stop := context.WithTimeout(ctx, leavingTimeout)
	defer stop()
	err := m.writeOwnRecord(ctx)
	if err == nil {
		_, err = m.patchRecord(ctx, PeerRecord{})
	}
	if err != nil && !isRecordRefused(err) {
		m.log.Error(err, "Failed to remove the peering record")
	}
}
