package attendance

import (
	"context"
	"sync"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// place is where one peering object is.
type place struct {
	kind      kind
	namespace string
}

// presence is that of the operator in one place.
type presence struct {
	end      func()
	answered <-chan struct{}
}

// attend begins all presences that are missing, and ends those in namespaces that are not the operator's any more.
func (a *Attendance) attend(ctx context.Context, namespaces []string) {
	if a.member.Self.Identity == "" && a.identify != nil && len(a.found) > 0 {
		a.member.Self.Identity = a.identify(ctx)
	}
	wanted := map[place]bool{}
	for _, k := range a.found {
		for _, namespace := range namespaces {
			wanted[place{k, namespace}] = true
		}
	}
	for at := range wanted {
		if _, is := a.places[at]; !is {
			a.places[at] = a.enter(ctx, at)
		}
	}
	for at, here := range a.places {
		if !wanted[at] {
			here.end()
			delete(a.places, at)
			a.show(at, nil)
		}
	}
}

// enter begins a presence. Its record outlives the context: it ends when it is told to.
func (a *Attendance) enter(ctx context.Context, at place) presence {
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
	object := peering.Stored{
		Client: a.client, Kind: at.kind.GroupVersionKind, Namespace: at.namespace, Name: member.Name,
		Subresource: at.kind.subresource,
	}
	membership := member.Join(object, part)
	a.show(at, membership)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { membership.Run(ctx) })
	running.Go(func() { a.follow(ctx, at, membership) })
	running.Go(func() { a.post(ctx, at, notices) })
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-membership.Answered():
			select {
			case a.answers <- struct{}{}:
			default:
			}
		}
	})
	a.present.Go(func() {
		running.Wait()
		part.Remove()
		a.namespaces.release(at.namespace)
	})
	return presence{cancel, membership.Answered()}
}

// admitAll tells in which namespaces all places have answered. It is true if that was told at least once.
func (a *Attendance) admitAll(namespaces []string) bool {
	if a.admit == nil {
		return true
	}
	silent := map[string]bool{}
	for at, here := range a.places {
		select {
		case <-here.answered:
		default:
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

// leaveAll ends all presences, and returns when their records are removed.
func (a *Attendance) leaveAll() {
	for at, here := range a.places {
		here.end()
		a.show(at, nil)
	}
	a.present.Wait()
}
