package draining

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// timeFormat is the format of times for people.
const timeFormat = time.RFC3339

// peeringObject is one peering object of the operator with its records.
type peeringObject struct {
	clusterops.PeeringObject

	records map[string]peering.PeerRecord
	ofPeers []string // identities of live operators, which can be processes of this one
	dead    []string // identities whose records are those of this operator, and can be removed
}

// peers are the peering objects of the operator.
type peers []peeringObject

// live returns the identities of the live operators in all objects.
func (p peers) live() (identities []string) {
	for _, one := range p {
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
	clusterwide, places := len(r.Namespaces) == 0 || r.Peering.Clusterwide, []string{""}
	if !clusterwide {
		places = r.places
	}
	_, kinds, err := r.PeeringKinds(ctx, clusterwide)
	if err != nil {
		return found, err
	}
	for _, kind := range kinds {
		for _, namespace := range places {
			var one peeringObject
			if one.PeeringObject, err = r.PeeringObject(kind, namespace, r.Peering.Name); err == nil {
				err = r.readPeers(ctx, &one)
			}
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return found, fmt.Errorf("reading %s: %w", one, err)
			default:
				found = append(found, one)
			}
		}
	}
	return found, nil
}

// freezeIdentity is the identity of the record with which a drain freezes operators. It is the same for all users, so
// that a later drain finds the record.
func (d *Drain) freezeIdentity() string { return d.Name + "/drain" }

// readPeers reads the records of the object, and sorts them. A record does not contain the name of its operator. So all
// live records of this framework can be those of this operator, and with AsKopf those of Kopf, too. An expired record
// is that of this operator only if the object is named after it, or if the identity is configured.
func (r *run) readPeers(ctx context.Context, one *peeringObject) error {
	body, err := one.Read(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	one.records, _ = peering.DecodeRecords(body, now) // operators log unreadable records
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
		case identity == r.Peering.Identity, record.Runtime == peering.Runtime && one.Name == r.Name:
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
	for _, one := range found {
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
		for _, one := range found {
			_, left := one.WriteRecord(clearing, r.freezeIdentity(), peering.PeerRecord{})
			err = errors.Join(err, left)
		}
		return err
	}
	r.note("The operators of the peering %q stay paused until %s: %q. Uninstall this one before, and repeat the "+
		"command to remove the rest; or continue by resume -P %s --id %s", r.Peering.Name,
		time.Now().Add(freezeLifetime).UTC().Format(timeFormat), found.live(), r.Peering.Name, r.freezeIdentity())
	go repeatEvery(ctx, freezeLifetime/4, func() {
		if err := r.writeFreeze(ctx, found, priority); err != nil {
			r.note("%v", err)
		}
	})
	return nil
}

// writeFreeze writes the record that pauses operators up to the priority.
func (r *run) writeFreeze(ctx context.Context, found peers, priority int) error {
	for _, one := range found {
		record := peering.PeerRecord{Priority: priority, Lifetime: freezeLifetime, LastSeen: time.Now()}
		if _, err := one.WritePause(ctx, r.freezeIdentity(), record); err != nil {
			return fmt.Errorf("freezing the operators in %s: %w", one, err)
		}
	}
	return nil
}

// awaitPause waits until all live operators have reported that they are idle. Operators that do not report their state,
// such as those of Kopf, are given some time.
func (r *run) awaitPause(ctx context.Context, found peers) error {
	begun, busy := time.Now(), []string(nil)
	isPaused := func(ctx context.Context) (_ bool, err error) {
		busy, err = r.busyPeers(ctx, found, time.Since(begun) < quietTime)
		return len(busy) == 0, err
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, acknowledgeTimeout, true, isPaused)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wait.Interrupted(err) && len(busy) > 0: // without busy peers, a request has taken too long
		return fmt.Errorf("operators of the peering %q have not paused within %s: %q", r.Peering.Name,
			acknowledgeTimeout, busy)
	}
	return err
}

// busyPeers reads the objects again, and returns the live operators that are not idle. Those that do not report their
// state count as busy on demand.
func (r *run) busyPeers(ctx context.Context, found peers, silentToo bool) (busy []string, err error) {
	for i := range found {
		one := &found[i]
		if err := r.readPeers(ctx, one); err != nil {
			return nil, fmt.Errorf("reading %s: %w", one, err)
		}
		for _, identity := range one.ofPeers {
			count := one.records[identity].Busy
			if count != nil && *count > 0 || count == nil && silentToo {
				busy = append(busy, identity)
			}
		}
	}
	return busy, nil
}

// removeRecords removes the records of this operator whose processes do not run any more, and its Leases. While the
// operator is frozen, the record of the freeze stays.
func (r *run) removeRecords(ctx context.Context, running bool) {
	found, err := r.findPeers(ctx)
	if err != nil {
		r.leave("peering "+r.Peering.Name, "records", err)
	}
	for _, one := range found {
		for _, identity := range one.dead {
			if running && identity == r.freezeIdentity() {
				continue
			}
			r.removeThing(one.String(), fmt.Sprintf("record of %q", identity), "peering records", func() error {
				_, err := one.WriteRecord(ctx, identity, peering.PeerRecord{})
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
	err := client.IgnoreNotFound(remove())
	if err != nil {
		r.leave(object, what, err)
	}
	r.count(row, true, err == nil)
}
