package freezing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// peeringObject is one peering object.
type peeringObject struct {
	stored   peering.StoredObject // where the records are
	resource schema.GroupResource // for messages
}

// applyOrder writes or removes the record, and logs the effect.
func (o peeringObject) applyOrder(ctx context.Context, order Order) error {
	log := logging.OfObject(
		logging.OfKind(logf.FromContext(ctx), o.stored.Kind),
		types.NamespacedName{Namespace: o.stored.Namespace, Name: o.stored.Name}, "",
	)
	if order.isResume() {
		return o.removeRecord(ctx, log, order.Identity)
	}
	record := order.Record
	// The lifetime counts from this time.
	record.LastSeen = time.Now()
	after, err := o.stored.WriteRecord(ctx, order.Identity, record)
	if err != nil {
		return o.explainError(err)
	}
	others := o.validRecords(after)
	// Without a schema for it, the API server silently prunes the status.
	if _, kept := others[order.Identity]; !kept {
		return fmt.Errorf(
			"the API server has not kept the record in %s: its CRD must have "+
				"x-kubernetes-preserve-unknown-fields: true for the status", o,
		)
	}
	// The own record is not a peer.
	delete(others, order.Identity)
	logPeers(log, order.Identity, record, others)
	return nil
}

// logPeers logs which peers pause. Peers of a higher priority do not pause; they are listed in a warning.
func logPeers(log logr.Logger, identity string, record peering.PeerRecord, others map[string]peering.PeerRecord) {
	var pausing, above []string
	for _, other := range slices.Sorted(maps.Keys(others)) {
		// Peers of the same priority pause as well.
		if others[other].Priority > record.Priority {
			above = append(above, other)
		} else {
			pausing = append(pausing, other)
		}
	}
	log.Info("Wrote the record that pauses operators", "identity", identity, "priority", record.Priority,
		"until", record.ExpiresAt().UTC().Format(time.RFC3339), "pausing", pausing)
	if len(above) > 0 {
		logging.Warn(log, "Operators of higher priorities do not pause", "priority", record.Priority, "peers", above)
	}
}

// removeRecord removes the record. It logs a warning if there is no such record, because the identity may be wrong.
func (o peeringObject) removeRecord(ctx context.Context, log logr.Logger, identity string) error {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(o.stored.Kind)
	key := client.ObjectKey{Namespace: o.stored.Namespace, Name: o.stored.Name}
	err := o.stored.Client.Get(ctx, key, before)
	if err != nil && !apierrors.IsForbidden(err) { // writing can be allowed without reading
		return o.explainError(err)
	}
	// The record is looked up before it is removed, to notice a wrong identity.
	status, _ := before.Object["status"].(map[string]any)
	_, known := status[identity]
	// An empty record removes the entry.
	after, writing := o.stored.WriteRecord(ctx, identity, peering.PeerRecord{})
	if writing != nil {
		return o.explainError(writing)
	}
	// The remaining peers show who may still keep operators paused.
	left := slices.Sorted(maps.Keys(o.validRecords(after)))
	// The warning needs a successful read: without one, the record may have existed.
	if err == nil && !known {
		logging.Warn(log, "There is no record to be removed; another --id has written those that are left",
			"identity", identity, "peers", left)
		return nil
	}
	log.Info("Removed the record that paused operators", "identity", identity, "peers", left)
	return nil
}

// validRecords returns the readable records that have not expired.
func (o peeringObject) validRecords(body map[string]any) map[string]peering.PeerRecord {
	now := time.Now()
	all, _ := peering.DecodeRecords(body, now) // operators log unreadable records
	maps.DeleteFunc(all, func(_ string, one peering.PeerRecord) bool { return !one.ExpiresAt().After(now) })
	return all
}

// explainError adds the object, or a remedy for missing permissions, to an error.
func (o peeringObject) explainError(err error) error {
	// The API server's message names the object and the user already.
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: grant the permission, as config/rbac/peering_role.yaml does for operators", err)
	}
	return fmt.Errorf("%s: %w", o, err)
}

// String names the object for messages.
func (o peeringObject) String() string {
	text := fmt.Sprintf("%s %q", o.resource, o.stored.Name)
	if o.stored.Namespace != "" {
		text += fmt.Sprintf(" in the namespace %q", o.stored.Namespace)
	}
	return text
}
