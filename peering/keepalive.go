package peering

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// repeat is how long after a keep-alive without an answer the next one follows.
	repeat = time.Second
	// settling is how long a record is there before its operator begins: operators whose records were removed just then
	// have written them again by the end of it.
	settling = time.Second
	// departure is how long the removal of the record may take.
	departure = 5 * time.Second
)

// KopfJitter is how much earlier than its end Kopf renews a record: 5 to 10 seconds, by chance.
func KopfJitter() time.Duration {
	return time.Duration(5+rand.IntN(6)) * time.Second //nolint:gosec // no secret
}

// KeepAlive writes the record again and again, until the context ends; then it is removed. An error is logged, and the
// record is written again after a second.
//
// # Guarantees
//
// With a Runtime, no two such members of one object act at once, whatever their clocks say:
//
//   - The gate opens when the record says that the operator acts, and when all peers that must let it act are at rest,
//     and say so. Those that cannot say so are given the Wait.
//   - The gate closes 2 seconds before the record ends for others, and never before half of its lifetime, counted from
//     when the last record was sent that the API server has confirmed. This end is told to the gate beforehand.
//   - When nothing is running any more, the record says so, and is removed. What does not end within a lifetime is not
//     waited for; then the record is left to end by itself.
//   - A record that is removed by somebody else is written again at once, but soon no more than once a second. The
//     others believe what it said, as long as it was to last, for its operator may be alive. Who has not seen it
//     begins a second after its own record is there, and not before.
func (m *Membership) KeepAlive(ctx context.Context) {
	for ctx.Err() == nil {
		if err := m.renew(ctx); err != nil && !placeless(err) {
			sleep(ctx, repeat)
			continue
		}
		m.rest(ctx, m.interval())
	}
	m.depart(ctx)
}

// renew writes the record, with as much time as leaves some for another attempt.
func (m *Membership) renew(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, max(time.Second, min(m.member.lifetime()/6, 10*time.Second)))
	defer cancel()
	err := m.Touch(limited)
	if err == nil && !m.member.Stealth {
		m.logger(ctx).V(1).Info("Kept the peering record alive")
	}
	return err
}

// rest waits for the next keep-alive, or for something that has to be written before.
func (m *Membership) rest(ctx context.Context, delay time.Duration) {
	beat := time.NewTimer(delay)
	defer beat.Stop()
	for {
		due, idle := m.toWrite()
		if due > 0 {
			sleep(ctx, due)
		}
		if due >= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			return
		case <-m.poke:
		case <-idle:
			// What ends may take a moment to be counted as ended.
			sleep(ctx, time.Millisecond)
		}
	}
}

const (
	later  = time.Duration(-1)
	atOnce = time.Duration(0)
)

// toWrite tells how soon the record has to be written. If that is later, it gives what to wait for, too, where that is
// the end of attempts.
func (m *Membership) toWrite() (due time.Duration, idle <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.member.ours():
		return later, nil
	case m.missing:
		return max(atOnce, time.Until(m.restored.Add(m.haste))), nil
	case m.standing != known:
		return later, nil
	case m.opening || !m.closed:
		if m.told > 0 {
			return later, nil
		}
		return atOnce, nil
	case m.told == 0:
		return later, nil
	case m.attempts() == 0:
		return atOnce, nil
	case m.member.Idle != nil:
		return later, m.member.Idle()
	default:
		return later, nil
	}
}

// interval is a third of the lifetime; or Kopf's, which is the lifetime but for the jitter: never without a pause, and
// never too late.
func (m *Membership) interval() time.Duration {
	lifetime, jitter := m.member.lifetime(), m.member.Jitter
	switch {
	case jitter == nil && m.member.ours():
		return max(time.Second, lifetime/3)
	case jitter == nil:
		jitter = KopfJitter
	}
	return max(time.Second, min(lifetime, max(time.Second, lifetime-jitter())))
}

// depart removes the record, when nothing is running any more.
func (m *Membership) depart(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if !m.quit(ctx) {
		return // it ends by itself
	}
	ctx, cancel := context.WithTimeout(ctx, departure)
	defer cancel()
	err := m.farewell(ctx)
	if err == nil {
		err = m.Leave(ctx)
	}
	if err != nil && !placeless(err) {
		m.logger(ctx).Error(err, "Failed to remove the peering record")
	}
}

// farewell has the record say that the operator is at rest. For if it says anything else when it is removed, the others
// do not believe that. What it said last may not be known: the answer may be lost.
func (m *Membership) farewell(ctx context.Context) error {
	if !m.member.ours() {
		return nil
	}
	return m.Touch(ctx)
}

// quit closes the gate, and waits for what is running. It is false if there is no record to be removed.
func (m *Membership) quit(ctx context.Context) bool {
	if !m.member.ours() {
		return true
	}
	m.mu.Lock()
	m.shut()
	m.left, m.opening = true, false
	if m.alarm != nil {
		m.alarm.Stop()
	}
	placed := m.standing != alone
	m.mu.Unlock()
	for end := time.Now().Add(m.member.lifetime()); placed && m.attempts() > 0; {
		if !time.Now().Before(end) {
			return false
		}
		_ = m.renew(ctx)
		m.waitIdle(ctx, min(m.interval(), time.Until(end)))
	}
	return placed
}

// waitIdle waits until nothing is running, or for some time.
func (m *Membership) waitIdle(ctx context.Context, limit time.Duration) {
	var idle <-chan struct{}
	if m.member.Idle != nil {
		idle = m.member.Idle()
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		sleep(ctx, time.Millisecond)
	case <-timer.C:
	}
}

// sleep returns false if the context ends first.
func sleep(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
