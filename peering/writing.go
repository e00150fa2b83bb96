package peering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errDropped is returned if the API server accepted the patch, but did not store the record. It prunes fields that the
// schema of the kind does not have.
var errDropped = errors.New("the API server did not keep it: the schema of the kind must have " +
	"x-kubernetes-preserve-unknown-fields in its status")

// writeOwnRecord writes the record of the operator as of now, and evaluates the object in the answer. Only one call may
// run at a time, because the answers of concurrent calls can arrive in another order.
//
// # Errors
//
// It returns the errors of the object, and an error if the API server has dropped the record because of the kind's
// schema.
func (m *membership) writeOwnRecord(ctx context.Context) error {
	m.mu.Lock()
	record := m.state.composeRecord(time.Now())
	m.mu.Unlock()
	object, err := m.patchRecord(ctx, record)
	m.applyAnswer(ctx, record, object, err)
	return err
}

// patchRecord writes the record of the operator. A record without a lifetime removes it.
func (m *membership) patchRecord(ctx context.Context, record PeerRecord) (map[string]any, error) {
	identity, encoded := m.Self().Identity, record.encodeFields()
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

// applyAnswer stores the result of writing the record, and evaluates the object in the answer. It holds the lock
// throughout: a decision by the new record without the peers of the same answer could open the gate although they
// demand a pause.
func (m *membership) applyAnswer(ctx context.Context, record PeerRecord, object map[string]any, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := &m.state, time.Now()
	s.scheduleRenewal(now, err != nil && !isRecordRefused(err))
	isCanceled := s.hasLeft || errors.Is(ctx.Err(), context.Canceled)
	switch {
	// The former record may have expired while the process was suspended. This decision closes the gate before the new
	// record is published.
	case err == nil:
		m.applyDecision(now)
		if s.confirmPublished(record, now) {
			m.logged["alone"], m.logged["failed"] = "", ""
			m.gate.AllowWritesUntil(s.lostAt)
		}
		m.evaluateObject(object, now)
	// A canceled request does not say anything about the API server.
	case isCanceled:
	// Without a record, peers do not see the operator, so its writes do not end with one. A mandatory peering or a
	// pause keeps the limit.
	case isRecordRefused(err):
		s.markUnavailable()
		if !s.member.Mandatory && !s.verdict.IsPaused() {
			m.gate.AllowWritesUntil(time.Time{})
		}
		m.reportUnavailable(err)
	default:
		m.reportFailed(err)
	}
	m.applyDecision(now)
}

// isRecordRefused reports whether the API server has answered that it cannot store a record. Other errors can be
// temporary.
func isRecordRefused(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsInvalid(err) || errors.Is(err, errDropped)
}

// StoredObject is a peering object in a cluster.
type StoredObject struct {
	// Client writes the object.
	Client client.Client
	// Kind is KopfPeering or ClusterKopfPeering, in one of Kopf's two API groups.
	Kind schema.GroupVersionKind
	// Namespace is empty for a ClusterKopfPeering.
	Namespace string
	// Name is the name of the object.
	Name string
	// HasStatus is true if the kind has a /status subresource. The API server ignores the status in patches of the
	// main resource then.
	HasStatus bool
}

// PatchStatus merges records into the status, and removes those that are nil. It returns the resulting object.
//
// # Errors
//
// It returns the client's errors: apierrors.IsNotFound if there is no such object, because the operator never creates
// it; apierrors.IsConflict if the object does not have the given resourceVersion.
func (s StoredObject) PatchStatus(
	ctx context.Context, status map[string]any, resourceVersion string,
) (map[string]any, error) {
	content := map[string]any{"status": status}
	if resourceVersion != "" {
		// The API server rejects a merge-patch whose resourceVersion differs from the stored one.
		content["metadata"] = map[string]any{"resourceVersion": resourceVersion}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding peering records: %w", err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.Kind)
	object.SetNamespace(s.Namespace)
	object.SetName(s.Name)
	patch := client.RawPatch(types.MergePatchType, data)
	if s.HasStatus {
		err = s.Client.Status().Patch(ctx, object, patch)
	} else {
		err = s.Client.Patch(ctx, object, patch)
	}
	return object.Object, err
}

// WriteRecord writes a record on behalf of a user, or removes it if the record does not have a lifetime. It returns the
// resulting object, and the errors of PatchStatus.
func (s StoredObject) WriteRecord(ctx context.Context, identity string, record PeerRecord) (map[string]any, error) {
	return s.PatchStatus(ctx, map[string]any{identity: record.encodeFields()}, "")
}
