package peering

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errDropped is for a kind whose schema does not have records.
var errDropped = errors.New("the API server did not keep it: the schema of the kind must have " +
	"x-kubernetes-preserve-unknown-fields in its status")

// touch writes the record of the operator as of now, and takes the object from the answer. Only one call may run at a
// time, because answers to several of them can arrive in another order.
//
// # Errors
//
// That of the object, and one if the API server has dropped the record, as for kinds of another schema.
func (m *Membership) touch(ctx context.Context) error {
	m.mu.Lock()
	record := m.state.compose(time.Now())
	m.mu.Unlock()
	object, err := m.patchRecord(ctx, record)
	m.confirm(ctx, record, object, err)
	return err
}

// patchRecord writes the record of the operator. A record without a lifetime removes it.
func (m *Membership) patchRecord(ctx context.Context, record Record) (map[string]any, error) {
	identity, encoded := m.Self().Identity, record.encode()
	object, err := m.object.PatchStatus(ctx, map[string]any{identity: encoded}, "")
	status, _ := object["status"].(map[string]any)
	if err == nil && encoded != nil && status[identity] == nil {
		err = errDropped
	}
	if err != nil {
		return nil, fmt.Errorf("writing the record of %q in peering %q: %w", identity, m.state.member.Name, err)
	}
	return object, nil
}

// confirm notes the result of writing the record, and takes the object from the answer. It does not release the lock in
// between: a decision by the new record without the peers in the same answer could open the gate beside them.
func (m *Membership) confirm(ctx context.Context, record Record, object map[string]any, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := &m.state, time.Now()
	s.scheduleRenewal(now, err != nil && !isRecordRefused(err))
	isCanceled := s.hasLeft || errors.Is(ctx.Err(), context.Canceled)
	switch {
	case err == nil:
		m.decide(now) // the former record may have expired while the process was suspended
		if s.publish(record, now) {
			m.logged["alone"], m.logged["failed"] = "", ""
			m.gate.AllowWritesUntil(s.lostAt)
		}
		m.observe(object, now)
	case isCanceled:
	case isRecordRefused(err):
		s.withdraw()
		if !s.member.Mandatory && !s.verdict.Paused() {
			m.gate.AllowWritesUntil(time.Time{})
		}
		m.reportUnavailable(err)
	default:
		m.reportFailed(err)
	}
	m.decide(now)
}

// isRecordRefused reports whether the API server answered that it cannot store a record.
func isRecordRefused(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsInvalid(err) || errors.Is(err, errDropped)
}
