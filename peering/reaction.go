package peering

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// Run keeps the record alive and reacts to what it hears, until the context ends; then it removes the record.
func (m *Membership) Run(ctx context.Context) {
	reacting := make(chan struct{})
	go func() {
		defer close(reacting)
		m.attendAll(ctx)
	}()
	m.KeepAlive(ctx)
	<-reacting
}

// attendAll does about each state of the object what can wait, until there is a newer one.
func (m *Membership) attendAll(ctx context.Context) {
	for ctx.Err() == nil {
		current, cancel := context.WithCancel(ctx)
		attended := make(chan error, 1)
		go func() { attended <- m.attend(current) }()
		select {
		case <-ctx.Done():
		case <-m.news:
		}
		cancel()
		if err := <-attended; err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			m.logger(ctx).V(1).Info("Failed to write about peers", "reason", err.Error())
			sleep(ctx, repeat) // the next state may come at once
		}
	}
}

// Hear takes the object as a watch has it: the gate is opened or closed at once. What is older than what is known is
// ignored.
func (m *Membership) Hear(ctx context.Context, object map[string]any) {
	if m.heed(ctx, object) {
		select {
		case m.news <- struct{}{}:
		default:
		}
	}
}

// Miss takes notice that the object seems to be gone. It is looked at once more before that has consequences.
func (m *Membership) Miss() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.standing == known {
		m.missing = true
		m.nudge()
	}
}

// React does what the records in an object ask for: it opens or closes the gate, and removes the records that are good
// no more. If it must pause, it waits until the first of its peers expires, and writes the own record: all look again
// then. The context ends that with the next event of the object. Records that cannot be read are logged and left alone.
// Errors are those of writing: they change nothing about the pause.
func (m *Membership) React(ctx context.Context, object map[string]any) error {
	if !m.heed(ctx, object) {
		return nil
	}
	return m.attend(ctx)
}

// heed learns of the object, unless it is another one, or older than what is known.
func (m *Membership) heed(ctx context.Context, object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["name"] != m.member.Name {
		return false
	}
	now := time.Now()
	records, err := Decode(object, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = logf.FromContext(ctx).WithValues("peering", m.member.Name)
	version, _ := metadata["resourceVersion"].(string)
	if older(version, m.version) {
		m.sightings.recollect(records, version)
		m.decide(now) // the rest may have come before it was known that the own record is there
		return false
	}
	m.version = version
	m.complain(err)
	m.mourn(m.sightings.note(records, version, now))
	m.recall(records)
	m.judge(now)
	m.decide(now)
	if !m.member.ours() {
		m.settle()
	}
	return true
}

// mourn tells of records that somebody else has removed.
func (m *Membership) mourn(gone []string) {
	if len(gone) > 0 && m.member.ours() && !m.left {
		logging.Warn(m.log, "Records of peers were removed while they acted; they are believed nevertheless",
			"peers", gone)
	}
}

// older tells whether a version comes before another one, as far as they can be compared.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// recall compares the own record with what was written. Where it could not be, it may be possible now.
func (m *Membership) recall(records map[string]Record) {
	if m.standing == unanswered || m.left {
		return
	}
	own, found := records[m.member.Self.Identity]
	m.missing = m.standing == alone || !found || own.Busy == nil || *own.Busy != m.told
	if m.missing {
		m.nudge()
	}
}

// nudge has the record looked at: it may have to be written.
func (m *Membership) nudge() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// attend does what can wait: see [Membership.React].
func (m *Membership) attend(ctx context.Context) error {
	m.mu.Lock()
	verdict, version := m.verdict, m.version
	m.mu.Unlock()
	err := m.bury(ctx, verdict.Dead, version)
	if verdict.Paused() && sleep(ctx, time.Until(verdict.Wake)) {
		err = errors.Join(err, m.Touch(ctx))
	}
	return err
}

// bury removes the records of the dead, as far as nothing has changed since. For whoever has not run for some time may
// see an object that is old, and take for dead who is alive.
func (m *Membership) bury(ctx context.Context, dead []string, version string) error {
	if !m.member.ours() {
		version = "" // as in Kopf
	}
	status := map[string]any{}
	for _, identity := range dead {
		if identity != m.member.Self.Identity || !m.member.ours() {
			status[identity] = nil
		}
	}
	if len(status) == 0 {
		return nil
	}
	if _, err := m.object.PatchStatus(ctx, status, version); err != nil {
		return fmt.Errorf("removing dead records from peering %q: %w", m.member.Name, err)
	}
	return nil
}
