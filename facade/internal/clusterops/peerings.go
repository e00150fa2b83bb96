package clusterops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// peeringGroups and peeringVersion are those of Kopf's peering. Old clusters have the second group. A cluster can serve
// both.
var peeringGroups = []string{"kopf.dev", "zalando.org"}

const peeringVersion = "v1"

// errPruned is returned if the API server silently prunes the status, because it has no schema for it.
var errPruned = errors.New("the API server has not kept the record: its CRD must have " +
	"x-kubernetes-preserve-unknown-fields: true for the status")

// PeeringKinds returns the peering kinds of one scope that the cluster serves, at most one of each API group, and their
// plural.
func (c *Cluster) PeeringKinds(
	ctx context.Context, clusterwide bool,
) (plural string, found []discovery.Resource, err error) {
	plural = "kopfpeerings"
	if clusterwide {
		plural = "clusterkopfpeerings"
	}
	// Only these groups are discovered, so a broken aggregated API does not matter.
	all, err := discovery.ListResources(ctx, c, peeringGroups...)
	if err != nil {
		return plural, nil, fmt.Errorf("looking for %s: %w", plural, err)
	}
	for _, one := range all {
		// The scope distinguishes kinds of the same name, and other versions have another format.
		if one.Version == peeringVersion && one.Plural == plural && one.Namespaced != clusterwide {
			found = append(found, one)
		}
	}
	return plural, found, nil
}

// PeeringObject is one peering object. It may not exist.
type PeeringObject struct {
	peering.StoredObject
	objects *Objects
}

// PeeringObject returns an object of one of the [Cluster.PeeringKinds].
func (c *Cluster) PeeringObject(kind discovery.Resource, namespace, name string) (PeeringObject, error) {
	all, err := c.ObjectsOf(kind, false)
	if err != nil {
		return PeeringObject{}, err
	}
	return PeeringObject{peering.StoredObject{
		Client: all.Client, Kind: kind.GroupVersionKind, Namespace: namespace, Name: name,
		// With the status subresource, a patch of the main resource would drop the record.
		HasStatus: kind.HasStatus(),
	}, all}, nil
}

// String names the object for people.
func (o PeeringObject) String() string {
	if o.Namespace != "" {
		return fmt.Sprintf("%s %s/%s", o.Kind.Kind, o.Namespace, o.Name)
	}
	return o.Kind.Kind + " " + o.Name
}

// Read reads the object.
func (o PeeringObject) Read(ctx context.Context) (body map[string]any, err error) {
	return o.objects.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name})
}

// WritePause writes a record, and returns all records that have not expired.
func (o PeeringObject) WritePause(
	ctx context.Context, identity string, record peering.PeerRecord,
) (valid map[string]peering.PeerRecord, err error) {
	after, err := o.WriteRecord(ctx, identity, record)
	if err != nil {
		return nil, err
	}
	valid = validRecords(after)
	if _, kept := valid[identity]; !kept {
		return nil, errPruned
	}
	return valid, nil
}

// validRecords returns the readable records that have not expired.
func validRecords(body map[string]any) map[string]peering.PeerRecord {
	now := time.Now()
	all, _ := peering.DecodeRecords(body, now) // operators log unreadable records
	maps.DeleteFunc(all, func(_ string, one peering.PeerRecord) bool { return !one.ExpiresAt().After(now) })
	return all
}
