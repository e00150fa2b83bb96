package peering

import (
	"context"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// place is the kind and namespace of one peering object. The name is the member's.
type place struct {
	kind      peeringKind
	namespace string
}

// presence is the membership of the operator in one place. The function end cancels it without waiting.
type presence struct {
	*membership

	end func()
}

// updatePlaces joins all missing places, and leaves the places in namespaces that left the scope.
func (a *Attendance) updatePlaces(ctx context.Context, namespaces []string) {
	if a.member.Self.Identity == "" && a.identify != nil && len(a.servedKinds) > 0 {
		a.member.Self.Identity = a.identify(ctx)
	}
	wanted := map[place]bool{}
	for _, k := range a.servedKinds {
		for _, namespace := range namespaces {
			wanted[place{k, namespace}] = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for at := range wanted {
		if _, is := a.places[at]; !is {
			a.places[at] = a.joinPlace(ctx, at)
		}
	}
	a.leavePlaces(func(at place) bool { return !wanted[at] })
}

// leavePlaces ends the presence in the selected places, without waiting for the removal of their records. The caller
// holds the lock.
func (a *Attendance) leavePlaces(leaves func(place) bool) {
	for at, here := range a.places {
		if leaves(at) {
			here.end()
			delete(a.places, at)
		}
	}
}

// leaveAll ends all presences, and returns when their records are removed. It waits without the lock, because the
// places can be read meanwhile.
func (a *Attendance) leaveAll() {
	a.mu.Lock()
	a.leavePlaces(func(place) bool { return true })
	a.mu.Unlock()
	a.memberships.Wait()
}

// joinPlace starts a presence. It continues after the end of the context, and ends by its own function, because the
// record must be removed after the context of the operator has ended.
func (a *Attendance) joinPlace(ctx context.Context, at place) presence {
	if at.namespace != "" {
		ctx = logf.IntoContext(ctx, logf.FromContext(ctx).WithValues("namespace", at.namespace))
	}
	member, gate := a.member, a.gate
	if a.namespaces != nil {
		own := a.namespaces.acquireGate(at.namespace)
		gate, member.Busy, member.Idle = own.combined, own.gate.Busy, own.gate.Idle
	}
	part, notices := gate.AddPart(), make(chan []string, 1)
	// An operator that acts already continues when a place is added.
	member.Acting = a.mayAct
	// Kopf's operators do not post events about peering.
	if !member.KopfRules {
		member.Notify = func(peers []string) { replaceNotice(notices, peers) }
	}
	// This must not block, because the membership calls it with its lock held. One signal is enough, as all places are
	// checked then.
	member.OnAnswer = func() {
		select {
		case a.answers <- struct{}{}:
		default:
		}
	}
	object := StoredObject{
		Client: a.client, Kind: at.kind.GroupVersionKind, Namespace: at.namespace, Name: member.Name,
		HasStatus: at.kind.hasStatus,
	}
	membership := member.joinObject(ctx, object, part)
	// The values of the context remain, such as the logger; its end does not matter here.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	// The membership, its watch and its events end together.
	running.Go(func() { membership.Run(ctx) })
	running.Go(func() { a.followObject(ctx, at, membership) })
	running.Go(func() { a.postEvents(ctx, at, notices) })
	a.memberships.Go(func() {
		running.Wait()
		release := func() { a.namespaces.releasePart(at.namespace, part) }
		// Removing the part opens the gate, so attempts must have ended before.
		if hasNoAttempts(member) {
			release()
			return
		}
		// Attempts can outlive the membership, and Run does not wait for them. The part stays as the membership has
		// left it: closed, and with the end of its record. It opens only after these attempts.
		go func() {
			for !hasNoAttempts(member) {
				time.Sleep(idleInterval)
			}
			release()
		}()
	})
	return presence{membership, cancel}
}

// hasNoAttempts reports whether no attempt of the member is running.
func hasNoAttempts(m Member) bool { return m.Busy == nil || m.Busy() == 0 }

// admitAnswered calls the admit function with the namespaces in which all places have answered. It returns true after
// the first call.
func (a *Attendance) admitAnswered(namespaces []string) bool {
	if a.onAdmitted == nil {
		return true
	}
	// A namespace has several places if both groups of kinds are served. All of them must have answered.
	silent := map[string]bool{}
	for at, here := range a.places {
		if !here.IsAnswered() {
			silent[at.namespace] = true
		}
	}
	// With a gate for each namespace, a place that never answers closes the gate of its namespace only.
	if a.admittedNamespaces == nil && len(silent) > 0 && a.namespaces == nil {
		return false
	}
	now, names := map[string]bool{}, []string{}
	for _, name := range namespaces {
		// An admitted namespace remains admitted, even if another kind is found there later.
		if a.admittedNamespaces[name] || !silent[name] {
			now[name], names = true, append(names, name)
		}
	}
	a.admittedNamespaces = now
	a.onAdmitted(names)
	return true
}
