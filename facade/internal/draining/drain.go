package draining

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
)

// Run drains the cluster, or lists what a drain would remove. The report is complete even if things are left, which
// [DrainReport.Items] lists.
//
// # Errors
//
// It returns an error, and no report, if nothing was changed: because a process of the operator is running, the user
// has not confirmed that none is, or the cluster cannot be reached. If the context ends, it returns both.
func (d *Drain) Run(ctx context.Context, config *rest.Config) (*DrainReport, error) {
	api, err := clusterops.Connect(config)
	if err != nil {
		return nil, err
	}
	r := &run{
		Drain: d, Cluster: api, results: newResults(), childKinds: map[schema.GroupKind]bool{},
		metadataOnly: min(placeOfRecords(d.Progress), placeOfEssence(d.Diffbase)) == inAnnotations,
		current:      &atomic.Pointer[string]{},
	}
	if r.places, err = r.selectNamespaces(ctx); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx) // ends what runs beside the drain
	defer stop()
	go repeatEvery(ctx, logInterval, func() { r.logState(logf.FromContext(ctx), r.current.Load()) })
	// First, make sure that nothing stores the things again.
	running, err := r.checkRunning(ctx)
	if err != nil {
		return nil, err
	}
	// Webhooks of a stopped operator can block the writes to its objects, so they are withdrawn first.
	r.drainWebhooks(ctx, running)
	if err := r.finishDeletions(ctx); err != nil {
		r.leave("delete handlers", "", err)
	}
	r.drainObjects(ctx)
	r.drainChildren(ctx)
	r.removeRecords(ctx, running)
	r.verify(ctx)
	return r.report(), context.Cause(ctx)
}

// drainObjects drains the objects of all handled kinds.
func (r *run) drainObjects(ctx context.Context) {
	for _, kind := range r.resolveKinds(ctx) {
		r.drainKind(ctx, kind)
	}
}

// errStoredAgain is the reason why a drained object has things of the operator again.
var errStoredAgain = errors.New("it was stored again after it was removed: stop the operator, and repeat the command")

// verify lists the objects again. If a process of the operator is running after all, it has stored its things again.
func (r *run) verify(ctx context.Context) {
	if r.Check || ctx.Err() != nil {
		return
	}
	checking := *r.Drain
	checking.Check = true
	again := *r
	again.Drain, again.results = &checking, newResults()
	again.drainObjects(ctx)
	for object, item := range again.items {
		if _, known := r.items[object]; !known {
			r.leave(object, item.What, errStoredAgain)
		}
	}
}

// checkRunning finds out whether a process of the operator is running. That is an error, unless it can be frozen: then
// running is true. If nothing shows whether there is one, the user must confirm that there is none.
func (r *run) checkRunning(ctx context.Context) (running bool, err error) {
	if r.Check {
		return false, nil
	}
	peers, peersErr := r.findPeers(ctx)
	leases, leasesErr := r.findLeases(ctx)
	// Those of replicas that share the objects are the last ones. Their holders are pods, unlike that of the layout.
	for _, one := range slices.Backward(leases) {
		if one.isHeld() {
			return false, fmt.Errorf("the operator is running: %s is held by %q until %s, unless it is renewed. Scale "+
				"the operator to zero, and repeat the command",
				one, *one.Spec.HolderIdentity, one.expires().UTC().Format(timeFormat))
		}
	}
	switch live := peers.live(); {
	case len(live) > 0 && r.Freeze:
		return true, r.freezePeers(ctx, peers)
	case len(live) > 0:
		return false, fmt.Errorf("operators of the peering %q are running: %q. Scale this operator to zero, and "+
			"repeat the command; or pause them with --freeze", r.Peering.Name, live)
	case peersErr != nil:
		return false, r.Confirm(fmt.Sprintf("the peering object cannot be read (%v), so it is unknown whether the "+
			"operator is running", peersErr))
	// A running process would have a record in the object, or would hold the Lease.
	case len(peers) > 0 || len(leases) > 0:
		return false, nil
	case leasesErr != nil:
		return false, r.Confirm(fmt.Sprintf("there is no peering object of the operator, and its Lease cannot be read "+
			"(%v), so it is unknown whether it is running", leasesErr))
	}
	return false, r.Confirm("there is neither a peering object nor a Lease of the operator, so it is unknown whether " +
		"it is running")
}
