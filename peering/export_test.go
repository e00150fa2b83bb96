package peering

import (
	"context"
	"errors"
	"time"
)

// Hostname is exported for its test vectors.
var Hostname = specificHostname

// ClosedByAll is exported for its table.
var ClosedByAll = closedByAll

// Tests simulate operators by memberships in objects of their own.
type (
	Membership   = membership
	SharedObject = sharedObject
)

// JoinObject returns a membership in the object.
func (m Member) JoinObject(ctx context.Context, object SharedObject, gate WriteGate) *Membership {
	return m.joinObject(ctx, object, gate)
}

// React applies one state of the object as Kopf does: it removes expired records, and writes the own record when the
// first blocker expires, unless the context ends before.
func (m *membership) React(ctx context.Context, object map[string]any) error {
	if metadata, _ := object["metadata"].(map[string]any); metadata["name"] != m.state.member.Name {
		return nil
	}
	m.ObserveObject(object)
	var err error
	if len(m.state.expired) > 0 {
		err = m.removeExpired(ctx)
	}
	if m.state.wakeAt.IsZero() {
		return err
	}
	select {
	case <-ctx.Done():
		return err
	case <-time.After(time.Until(m.state.wakeAt)):
		return errors.Join(err, m.writeOwnRecord(ctx))
	}
}

// Touch writes the record. Run must not do so at the same time.
func (m *membership) Touch(ctx context.Context) error { return m.writeOwnRecord(ctx) }

// Leave removes the own record.
func (m *membership) Leave(ctx context.Context) error {
	_, err := m.patchRecord(ctx, PeerRecord{})
	return err
}
