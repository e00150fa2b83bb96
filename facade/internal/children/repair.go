package children

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

var _ owned.Author = (*Keeper)(nil)

// The first repair starts immediately. Each repair soon after another one doubles the delay, because another controller
// may revert our repair each time.
const (
	firstRepairDelay = time.Second
	maxRepairDelay   = 5 * time.Minute
	repairDelayReset = 2 * maxRepairDelay // after this time without a repair, the next one starts immediately
)

// RepairReason is the reason of the Kubernetes event about a repair.
const RepairReason = "ChildRepaired"

// NeedsRepair compares an observed state of a child with its last apply, and reports whether Repair must run. Gone
// means that the child was deleted. Unseen means that its last states before the deletion may have been missed.
func (k *Keeper) NeedsRepair(parent types.UID, child *unstructured.Unstructured, gone, unseen bool) bool {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	found := false
	for _, s := range k.memory.parentSets(parent) {
		// Several handlers can declare the same child, so all of their sets are searched.
		one := s.appliedChildren[identityOf(child)]
		// An event for a former object of the same name does not concern the applied one.
		if one == nil || one.uid != child.GetUID() {
			continue
		}
		version := child.GetResourceVersion()
		switch {
		case one.noteOutcome(child):
			found = true // the outcome must be stored
			continue
		// A child that is done is not repaired.
		case one.outcome != "":
			found = found || gone // a handler may wait for the end of this child
			continue
		// Its last states were missed, for example by a reconnected watch, so its end may have been missed, too.
		case gone && unseen && one.child.rules.UntilDone: // it may have ended before the deletion
			one.outcome, one.drift, found = outcomeVanished, "", true
			continue
		case gone:
			one.drift = driftDeleted
		// These are our own write, a stale state, a deletion in progress, or a child that is never updated.
		case version == one.resourceVersion, patching.IsNewerVersion(one.resourceVersion, version),
			child.GetDeletionTimestamp() != nil,
			one.child.rules.Once:
			continue
		// The object differs only in fields that do not count, such as its status.
		case fingerprintOf(child.Object) == one.appliedFingerprint:
			one.drift = "" // another client may have reverted its change
			continue
		default:
			one.drift = driftEdited
		}
		one.driftVersion, found = version, true
	}
	return found
}

// RepairChildren applies the drifted children of the parent again. It returns the delay until the next repair, or nil
// if none is necessary.
func (k *Keeper) RepairChildren(
	ctx context.Context, parent map[string]any, events handlers.EventPoster,
) (again *time.Duration) {
	uid := uidOf(parent)
	// Most calls end here, without waiting for the turn.
	if patching.IsBeingDeleted(parent) || len(k.memory.driftedChildren(uid)) == 0 {
		return nil
	}
	leave, err := k.memory.awaitTurn(ctx, uid)
	if err != nil {
		return nil
	}
	defer leave()
	// The list is read again under the turn: a handler may have applied the children meanwhile.
	for _, one := range k.memory.driftedChildren(uid) {
		if one.repairDelay(time.Now()) == 0 {
			k.repairChild(ctx, parent, one, events)
		}
	}
	for _, one := range k.memory.driftedChildren(uid) {
		// Children that failed or that wait for their delay determine the time of the next repair.
		if delay := one.repairDelay(time.Now()); again == nil || delay < *again {
			again = &delay
		}
	}
	return again
}

// repairChild applies one child again, and reports the repair if something was written.
func (k *Keeper) repairChild(
	ctx context.Context, parent map[string]any, one *appliedChild, events handlers.EventPoster,
) {
	what, seen := k.memory.beginRepair(one, time.Now())
	log := logf.FromContext(ctx).WithValues("child", one.child.String())
	// The uid restricts the repair to the object that was applied.
	uid := one.uid
	if what == driftDeleted {
		// A deleted child is created again, under a new uid, but only if the parent still exists.
		if uid = ""; !k.parentExists(ctx, parent) {
			k.memory.forgetApplied(uidOf(parent))
			return
		}
	}
	made, _, err := k.createOrApply(ctx, parent, one.child, uid)
	if err != nil {
		log.Error(err, "Cannot repair a child; retrying", "after", one.repairDelay(time.Now()).String())
		return
	}
	k.memory.endRepair(one, made, seen)
	if made.GetResourceVersion() == seen {
		return // the change was in undeclared fields, so nothing was written
	}
	k.memory.noteWrite(made, true)
	// The event and the metric follow only a real change, so that repeated checks stay silent.
	log.Info("Repaired a child that another client changed", "what", string(what))
	if k.OnRepair != nil {
		kind := (&unstructured.Unstructured{Object: parent}).GroupVersionKind().GroupKind()
		k.OnRepair(kind.String(), schema.GroupKind{Group: one.child.group, Kind: one.child.kind}.String())
	}
	events.Post(ctx, parent, corev1.EventTypeNormal, RepairReason,
		fmt.Sprintf("%s was %s, and is as declared again", one.child.identity, what))
}

// parentExists reads the parent from the API server. The garbage collector deletes the children of a deleted parent,
// and the events of their deletions can arrive before the event of the parent. A failed request counts as existing:
// then the apply decides.
func (k *Keeper) parentExists(ctx context.Context, parent map[string]any) bool {
	known := &unstructured.Unstructured{Object: parent}
	held := &metav1.PartialObjectMetadata{}
	held.SetGroupVersionKind(known.GroupVersionKind())
	err := k.APIReader.Get(ctx, client.ObjectKeyFromObject(known), held)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return held.UID == known.GetUID() && held.DeletionTimestamp == nil
}

// repairDelay returns the remaining delay of the next repair: zero for the first one, then from firstRepairDelay up to
// maxRepairDelay.
func (one *appliedChild) repairDelay(now time.Time) time.Duration {
	if one.repairCount == 0 {
		return 0
	}
	// The limit of 20 prevents an overflow of the shift.
	delay := min(firstRepairDelay<<min(one.repairCount-1, 20), maxRepairDelay)
	return max(0, one.lastRepair.Add(delay).Sub(now))
}

// beginRepair counts a repair that starts now. It returns the drift and the version of the child that has it.
func (m *memory) beginRepair(one *appliedChild, now time.Time) (what drift, seen string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The child was stable for a long time, so this is a new conflict.
	if now.Sub(one.lastRepair) > repairDelayReset {
		one.repairCount = 0
	}
	one.lastRepair = now
	one.repairCount++
	return one.drift, one.driftVersion
}

// endRepair stores the state of a repaired child. If the child has changed again since the repair started, its drift
// stays.
func (m *memory) endRepair(one *appliedChild, made *unstructured.Unstructured, seen string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one.driftVersion == seen || !patching.IsNewerVersion(one.driftVersion, made.GetResourceVersion()) {
		one.drift = ""
	}
	one.uid, one.resourceVersion, one.appliedFingerprint = made.GetUID(), made.GetResourceVersion(),
		fingerprintOf(made.Object)
}

// driftedChildren returns the children of the parent that need a repair.
func (m *memory) driftedChildren(parent types.UID) (all []*appliedChild) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.parentSets(parent) {
		for _, one := range s.appliedChildren {
			if one.drift != "" {
				all = append(all, one)
			}
		}
	}
	return all
}
