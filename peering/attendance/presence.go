package attendance

import (
	"context"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// place is where one peering object is.
type place struct {
	kind      kind
	namespace string
}

// presence is the membership of the operator in one place.
type presence struct {
	*peering.Membership

	end func()
}

// updatePlaces joins all missing places, and leaves those in namespaces that do not belong to the operator any more.
func (a *Attendance) updatePlaces(ctx context.Context, namespaces []string) {
	if a.member.Self.Identity == "" && a.identify != nil && len(a.found) > 0 {
		a.member.Self.Identity = a.identify(ctx)
	}
	wanted := map[place]bool{}
	for _, k := range a.found {
		for _, namespace := range namespaces {
			wanted[place{k, namespace}] = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for at := range wanted {
		if _, is := a.places[at]; !is {
			a.places[at] = a.join(ctx, at)
		}
	}
	a.leavePlaces(func(at place) bool { return !wanted[at] })
}

// leavePlaces ends the presence in some places. The lock is held.
func (a *Attendance) leavePlaces(leaves func(place) bool) {
	for at, here := range a.places {
		if leaves(at) {
			here.end()
			delete(a.places, at)
		}
	}
}

// leaveAll ends all presences, and returns when their records are removed.
func (a *Attendance) leaveAll() {
	a.mu.Lock()
	a.leavePlaces(func(place) bool { return true })
	a.mu.Unlock()
	a.present.Wait()
}

// join begins a presence. It outlives the context, and ends by its own function.
func (a *Attendance) join(ctx context.Context, at place) presence {
	if at.namespace != "" {
		ctx = logf.IntoContext(ctx, logf.FromContext(ctx).WithValues("namespace", at.namespace))
	}
	member, gate := a.member, a.gate
	if a.namespaces != nil {
		own := a.namespaces.acquire(at.namespace)
		gate, member.Busy, member.Idle = own.combined, own.gate.Busy, own.gate.Idle
	}
	part, notices := gate.Add(), make(chan []string, 1)
	member.Acting = a.opened
	if !member.KopfRules {
		member.Notify = func(peers []string) { replace(notices, peers) }
	}
	member.OnAnswer = func() {
		select {
		case a.answers <- struct{}{}:
		default:
		}
	}
	object := peering.Stored{
		Client: a.client, Kind: at.kind.GroupVersionKind, Namespace: at.namespace, Name: member.Name,
		Subresource: at.kind.subresource,
	}
	membership := member.Join(ctx, object, part)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { membership.Run(ctx) })
	running.Go(func() { a.follow(ctx, at, membership) })
	running.Go(func() { a.post(ctx, at, notices) })
	a.present.Go(func() {
		running.Wait()
		release := func() { a.namespaces.release(at.namespace, part) }
		if isIdle(member) {
			release()
			return
		}
		// Attempts can outlive the membership. The part stays as the membership has left it: closed, and with the end
		// of its record. It opens only after these attempts, for which Run does not wait.
		go func() {
			for !isIdle(member) {
				time.Sleep(idleInterval)
			}
			release()
		}()
	})
	return presence{membership, cancel}
}

func isIdle(m peering.Member) bool { return m.Busy == nil || m.Busy() == 0 }

// admitAnswered reports the namespaces in which all places have answered. It returns true after the first report.
func (a *Attendance) admitAnswered(namespaces []string) bool {
	if a.admit == nil {
		return true
	}
	silent := map[string]bool{}
	for at, here := range a.places {
		if !here.IsAnswered() {
			silent[at.namespace] = true
		}
	}
	// With a gate for each namespace, a place that never answers closes the gate of its namespace only.
	if a.admitted == nil && len(silent) > 0 && a.namespaces == nil {
		return false
	}
	now, names := map[string]bool{}, []string{}
	for _, name := range namespaces {
		if a.admitted[name] || !silent[name] {
			now[name], names = true, append(names, name)
		}
	}
	a.admitted = now
	a.admit(names)
	return true
}
