package draining

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// timeFormat is the format of times for people.
const timeFormat = time.RFC3339

// peeringGroups are the API groups of peering kinds, and peeringVersion is their version. A cluster can serve both.
var peeringGroups = []string{"kopf.dev", "zalando.org"}

const peeringVersion = "v1"

// peers are the peering objects of the operator with their records.
type peers struct {
	objects []peeringObject
}

// peeringObject is one peering object with its records.
type peeringObject struct {
	stored  peering.StoredObject
	records map[string]peering.PeerRecord
	ofPeers []string // identities of live operators, which can be processes of this one
	dead    []string // identities whose records are those of this operator, and can be removed
}

// String names the object for people.
func (o peeringObject) String() string {
	if o.stored.Namespace != "" {
		return fmt.Sprintf("%s %s/%s", o.stored.Kind.Kind, o.stored.Namespace, o.stored.Name)
	}
	return o.stored.Kind.Kind + " " + o.stored.Name
}

// live returns the identities of the live operators in all objects.
func (p peers) live() (identities []string) {
	for _, one := range p.objects {
		identities = append(identities, one.ofPeers...)
	}
	slices.Sort(identities)
	return slices.Compact(identities)
}

// findPeers reads the peering objects that the operator uses. Objects that do not exist are left out.
func (r *run) findPeers(ctx context.Context) (found peers, err error) {
	if r.Peering.Standalone {
		return found, nil
	}
	// Without namespaces, the operator uses the object of the cluster.
	plural, places := "clusterkopfpeerings", []string{""}
	if len(r.Namespaces) > 0 && !r.Peering.Clusterwide {
		plural, places = "kopfpeerings", r.places
	}
	all, err := discovery.ListResources(ctx, r.api, peeringGroups...)
	if err != nil {
		return found, fmt.Errorf("looking for %s: %w", plural, err)
	}
	for _, kind := range all {
		if kind.Plural != plural || kind.Version != peeringVersion {
			continue
		}
		api, err := r.newPeeringClient(kind)
		if err != nil {
			return found, err
		}
		for _, namespace := range places {
			one := peeringObject{stored: peering.StoredObject{
				Client: api, Kind: kind.GroupVersionKind, Namespace: namespace, Name: r.Peering.Name,
				HasStatus: kind.HasStatus(),
			}}
			switch err := r.readPeers(ctx, &one); {
			case apierrors.IsNotFound(err):
			case err != nil:
				return found, fmt.Errorf("reading %s: %w", one, err)
			default:
				found.objects = append(found.objects, one)
			}
		}
	}
	return found, nil
}

// newPeeringClient returns a client for one peering kind. It needs no further discovery.
func (r *run) newPeeringClient(kind discovery.Resource) (client.Client, error) {
	mapper, scope := meta.NewDefaultRESTMapper(nil), meta.RESTScopeRoot
	if kind.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	mapper.AddSpecific(kind.GroupVersionKind, kind.GroupVersionResource(), kind.GroupVersionResource(), scope)
	return client.New(r.config, client.Options{Scheme: runtime.NewScheme(), Mapper: mapper})
}

// freezeIdentity is the identity of the record with which a drain freezes operators. It is the same for all users, so
// that a later drain finds the record.
func (d *Drain) freezeIdentity() string { return d.Name + "/drain" }

// readPeers reads the records of the object, and sorts them. A record does not contain the name of its operator. So all
// live records of this framework can be those of this operator, and with AsKopf those of Kopf, too. An expired record
// is that of this operator only if the object is named after it, or if the identity is configured.
func (r *run) readPeers(ctx context.Context, one *peeringObject) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(one.stored.Kind)
	key := client.ObjectKey{Namespace: one.stored.Namespace, Name: one.stored.Name}
	if err := one.stored.Client.Get(ctx, key, object); err != nil {
		return err
	}
	now := time.Now()
	one.records, _ = peering.DecodeRecords(object.Object, now) // operators log unreadable records
	one.ofPeers, one.dead = nil, nil
	for _, identity := range slices.Sorted(maps.Keys(one.records)) {
		record := one.records[identity]
		switch {
		case identity == r.freezeIdentity():
			one.dead = append(one.dead, identity)
		case record.ExpiresAt().After(now):
			if record.Runtime != "" || r.Shared {
				one.ofPeers = append(one.ofPeers, identity)
			}
		case identity == r.Peering.Identity, record.Runtime == peering.Runtime && one.stored.Name == r.Name:
			one.dead = append(one.dead, identity)
		}
	}
	return nil
}

const (
	// freezeLifetime is the lifetime of the record of a freeze. It is renewed during the drain, and stays after it.
	freezeLifetime = time.Hour
	// freezePriority is the least priority of a freeze, as that of the command freeze.
	freezePriority = 100
	// acknowledgeTimeout is how long the drain waits for the running operators to pause. Operators that do not report
	// their state get quietTime.
	acknowledgeTimeout = 2 * time.Minute
	quietTime          = 5 * time.Second
	pollInterval       = time.Second
)

// freezePeers pauses all live operators of the peering, and waits until none of them runs a handler. The record stays
// after the drain, because operators would otherwise continue and store everything again.
func (r *run) freezePeers(ctx context.Context, found peers) error {
	priority := freezePriority
	for _, one := range found.objects {
		for _, identity := range one.ofPeers {
			priority = max(priority, one.records[identity].Priority) // operators of the same priority pause
		}
	}
	if err := r.writeFreeze(ctx, found, priority); err != nil {
		return err
	}
	err := r.awaitPause(ctx, found)
	if err != nil {
		// Nothing was drained, so the operators continue.
		clearing := context.WithoutCancel(ctx)
		for _, one := range found.objects {
			_, left := one.stored.WriteRecord(clearing, r.freezeIdentity(), peering.PeerRecord{})
			err = errors.Join(err, left)
		}
		return err
	}
	r.note("The operators of the peering %q stay paused until %s: %q. Uninstall this one before, and repeat the "+
		"command to remove the rest; or continue by resume -P %s --id %s", r.Peering.Name,
		time.Now().Add(freezeLifetime).UTC().Format(timeFormat), found.live(), r.Peering.Name, r.freezeIdentity())
	go r.renewFreeze(ctx, found, priority)
	return nil
}

// writeFreeze writes the record that pauses operators up to the priority.
func (r *run) writeFreeze(ctx context.Context, found peers, priority int) error {
	for _, one := range found.objects {
		record := peering.PeerRecord{Priority: priority, Lifetime: freezeLifetime, LastSeen: time.Now()}
		after, err := one.stored.WriteRecord(ctx, r.freezeIdentity(), record)
		if err != nil {
			return fmt.Errorf("freezing the operators in %s: %w", one, err)
		}
		if kept, _ := peering.DecodeRecords(after, time.Now()); kept[r.freezeIdentity()].Lifetime == 0 {
			return fmt.Errorf("freezing the operators in %s: the API server has not kept the record: its CRD must "+
				"have x-kubernetes-preserve-unknown-fields: true for the status", one)
		}
	}
	return nil
}

// renewFreeze renews the record during a long drain.
func (r *run) renewFreeze(ctx context.Context, found peers, priority int) {
	ticker := time.NewTicker(freezeLifetime / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.finished:
			return
		case <-ticker.C:
			if err := r.writeFreeze(ctx, found, priority); err != nil {
				r.note("%v", err)
			}
		}
	}
}

// awaitPause waits until all live operators have reported that they are idle. Operators that do not report their state,
// such as those of Kopf, are given some time.
func (r *run) awaitPause(ctx context.Context, found peers) error {
	begun := time.Now()
	for {
		var busy []string
		for i := range found.objects {
			one := &found.objects[i]
			if err := r.readPeers(ctx, one); err != nil {
				return fmt.Errorf("reading %s: %w", one, err)
			}
			for _, identity := range one.ofPeers {
				count := one.records[identity].Busy
				if count != nil && *count > 0 || count == nil && time.Since(begun) < quietTime {
					busy = append(busy, identity)
				}
			}
		}
		switch {
		case len(busy) == 0:
			return nil
		case time.Since(begun) > acknowledgeTimeout:
			return fmt.Errorf("operators of the peering %q have not paused within %s: %q", r.Peering.Name,
				acknowledgeTimeout, busy)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

// removeRecords removes the records of this operator whose processes do not run any more, and its Leases. While the
// operator is frozen, the record of the freeze stays.
func (r *run) removeRecords(ctx context.Context, running bool) {
	found, err := r.findPeers(ctx)
	if err != nil {
		r.leave("peering "+r.Peering.Name, "records", err)
	}
	for _, one := range found.objects {
		for _, identity := range one.dead {
			if running && identity == r.freezeIdentity() {
				continue
			}
			r.removeThing(one.String(), fmt.Sprintf("record of %q", identity), "peering records", func() error {
				_, err := one.stored.WriteRecord(ctx, identity, peering.PeerRecord{})
				return err
			})
		}
	}
	leases, err := r.findLeases(ctx)
	if err != nil {
		r.note("The Leases of the operator cannot be read: %v", err)
	}
	for _, one := range leases {
		r.removeThing(one.String(), "Lease", "leases", func() error { return r.deleteLease(ctx, one) })
	}
}

// removeThing removes one thing that is not on an object of users, or lists it in a check.
func (r *run) removeThing(object, what, row string, remove func() error) {
	if r.Check {
		r.count(row, true, false)
		r.list(object+", "+what, "")
		return
	}
	err := remove()
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if err != nil {
		r.leave(object, what, err)
	}
	r.count(row, true, err == nil)
}
