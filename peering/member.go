package peering

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// Object is the peering object of a member. What it is called with is a merge-patch of its status, wherever its kind
// has that: as a subresource or not.
type Object interface {
	PatchStatus(ctx context.Context, status map[string]any) error
}

// Gate is closed while the operator must not act.
type Gate interface {
	Set(closed bool)
}

// Member keeps the record of one operator in one peering object, and does what the records of the others ask for.
type Member struct {
	// Self is the operator.
	Self Self
	// Name is that of the peering object: others are ignored.
	Name string
	// Lifetime is how long a record is good; zero is [DefaultLifetime], negative removes it.
	Lifetime time.Duration
	// Runtime is what its records say to be of; empty for those that are as Kopf's.
	Runtime string
	// Busy counts the attempts that are running; nil says nothing of them.
	Busy func() int
	// Jitter is how much earlier than its end a record is renewed, in Kopf's way; nil is 5 to 10 seconds, by chance.
	Jitter func() time.Duration

	object Object
	gate   Gate
	closed bool
}

// Join gives a member with these fields that keeps its record in the object, and acts by the gate.
func (m Member) Join(object Object, gate Gate) *Member {
	m.object, m.gate = object, gate
	return &m
}

// Touch writes the record of the operator as of now.
func (m *Member) Touch(ctx context.Context) error {
	record := Record{Priority: m.Self.Priority, Lifetime: m.lifetime(), LastSeen: time.Now(), Runtime: m.Runtime}
	if m.Busy != nil {
		busy := m.Busy()
		record.Busy = &busy
	}
	return m.write(ctx, record)
}

// Leave removes the record of the operator.
func (m *Member) Leave(ctx context.Context) error { return m.write(ctx, Record{}) }

func (m *Member) write(ctx context.Context, record Record) error {
	if err := m.object.PatchStatus(ctx, map[string]any{m.Self.Identity: record.encode()}); err != nil {
		return fmt.Errorf("writing the record of %q in peering %q: %w", m.Self.Identity, m.Name, err)
	}
	return nil
}

func (m *Member) lifetime() time.Duration {
	if m.Lifetime == 0 {
		return DefaultLifetime
	}
	return m.Lifetime
}

// KeepAlive writes the record again and again, until the context ends; then it is removed, for which there is as much
// time as the record is good. An error is logged: the next record may be written.
func (m *Member) KeepAlive(ctx context.Context) {
	log := logf.FromContext(ctx)
	for ctx.Err() == nil {
		if err := m.Touch(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "Failed to keep the peering record alive", "peering", m.Name)
		}
		sleep(ctx, m.interval())
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Second, m.lifetime()))
	defer cancel()
	if err := m.Leave(leaving); err != nil {
		log.Error(err, "Failed to remove the peering record", "peering", m.Name)
	}
}

// interval is Kopf's: as long as the record is good but for the jitter; never without a pause, and never too late.
func (m *Member) interval() time.Duration {
	jitter := m.Jitter
	if jitter == nil {
		jitter = func() time.Duration { return time.Duration(5+rand.IntN(6)) * time.Second } //nolint:gosec // no secret
	}
	lifetime := m.lifetime()
	return max(time.Second, min(lifetime, max(time.Second, lifetime-jitter())))
}

// React does what the records in an object ask for: it opens or closes the gate, and removes the records that are good
// no more. If it must pause, it waits until the first of its peers expires, and writes the own record: all look again
// then. The context ends that with the next event of the object. Records that cannot be read are logged and left alone.
// Errors are those of writing: they change nothing about the pause.
func (m *Member) React(ctx context.Context, object map[string]any) error {
	if metadata, _ := object["metadata"].(map[string]any); metadata["name"] != m.Name {
		return nil
	}
	now := time.Now()
	records, err := Decode(object, now)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Ignored malformed peering records", "peering", m.Name)
	}
	verdict := Judge(m.Self, records, now)
	m.turn(ctx, verdict)
	err = m.bury(ctx, verdict.Dead)
	if verdict.Paused() && sleep(ctx, verdict.Wake.Sub(now)) {
		err = errors.Join(err, m.Touch(ctx))
	}
	return err
}

// bury removes the records of the dead.
func (m *Member) bury(ctx context.Context, dead []string) error {
	if len(dead) == 0 {
		return nil
	}
	status := map[string]any{}
	for _, identity := range dead {
		status[identity] = nil
	}
	if err := m.object.PatchStatus(ctx, status); err != nil {
		return fmt.Errorf("removing dead records from peering %q: %w", m.Name, err)
	}
	return nil
}

// turn opens or closes the gate.
func (m *Member) turn(ctx context.Context, verdict Verdict) {
	log, paused := logf.FromContext(ctx), verdict.Paused()
	if paused != m.closed {
		m.closed = paused
		if paused {
			log.Info("Pausing operations in favour of peers", "peering", m.Name, "peers", verdict.Blockers)
		} else {
			log.Info("Resuming operations after the pause", "peering", m.Name)
		}
	}
	if len(verdict.Equals) > 0 {
		logging.Warn(log, "Operators have the same priority, so all of them pause; give them different ones",
			"peering", m.Name, "peers", verdict.Equals, "priority", m.Self.Priority)
	}
	m.gate.Set(paused)
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
