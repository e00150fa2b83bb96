package peering

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Touch writes the record of the operator as of now, and heeds what the object says then.
//
// # Errors
//
// That of the object, and one if the API server has dropped what was written, as kinds of another schema do.
func (m *Membership) Touch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case m.writing <- struct{}{}:
	}
	defer func() { <-m.writing }()
	sent := time.Now()
	record := m.present(sent)
	object, err := m.write(ctx, record.encode())
	if err == nil && m.member.ours() && record.Lifetime > 0 {
		err = m.kept(object)
	}
	m.written(ctx, record, sent, object, err)
	return err
}

// present is the record of the operator.
func (m *Membership) present(now time.Time) Record {
	record := Record{
		Priority: m.member.Self.Priority, Lifetime: m.member.lifetime(), LastSeen: now, Runtime: m.member.Runtime,
	}
	if !m.member.ours() {
		return record
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missing {
		m.restore(now)
	}
	busy := m.attempts()
	if m.opening || !m.closed {
		busy++
	}
	record.Busy = &busy
	return record
}

// restore notes that the record is written because it was missing. Kopf removes it several times, as it goes through
// its events; whoever removes it again and again is not followed faster than it makes sense.
func (m *Membership) restore(now time.Time) {
	if now.After(m.restored.Add(10 * repeat)) {
		m.haste = repeat / 32
	}
	m.restored, m.haste = now, min(2*m.haste, repeat)
}

func (m *Membership) attempts() int {
	if m.member.Busy == nil {
		return 0
	}
	return m.member.Busy()
}

// errDropped is for a kind whose schema does not have records.
var errDropped = errors.New("the API server did not keep it: the schema of the kind must have " +
	"x-kubernetes-preserve-unknown-fields in its status")

// kept tells whether the object has the record.
func (m *Membership) kept(object map[string]any) error {
	if status, _ := object["status"].(map[string]any); status[m.member.Self.Identity] == nil {
		return m.writeError(errDropped)
	}
	return nil
}

// placeless tells whether there is no place for a record, rather than no answer.
func placeless(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsInvalid(err) || errors.Is(err, errDropped)
}

// Leave removes the record of the operator, whatever it says.
func (m *Membership) Leave(ctx context.Context) error {
	_, err := m.write(ctx, nil)
	return err
}

func (m *Membership) write(ctx context.Context, record any) (map[string]any, error) {
	object, err := m.object.PatchStatus(ctx, map[string]any{m.member.Self.Identity: record}, "")
	if err != nil {
		return nil, m.writeError(err)
	}
	return object, nil
}

func (m *Membership) writeError(err error) error {
	return fmt.Errorf("writing the record of %q in peering %q: %w", m.member.Self.Identity, m.member.Name, err)
}
