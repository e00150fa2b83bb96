package sharding

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// leave gives back all ranges, and removes the Lease of the replica. It renews the Lease until the context ends: as
// long as handlers may run. A range that is still busy after that is kept until its Lease expires.
func (s *Sharding) leave(handling context.Context) {
	ctx := context.WithoutCancel(handling)
	s.core.isEnding = true
	var deadline time.Time // zero while handlers may run
	for failures := 0; ; {
		_, err := s.tick(ctx)
		if err != nil {
			failures++
		}
		if deadline.IsZero() && handling.Err() != nil {
			failures, deadline = 0, time.Now().Add(leaseDuration)
		}
		isDone := err == nil && !s.core.holdsAny()
		// If the API server does not answer, two failures end it, unless attempts are running.
		isOver := !deadline.IsZero() && (!time.Now().Before(deadline) || failures > 1 && s.core.nextIdle() == nil)
		if isDone || isOver {
			break
		}
		s.wait(ctx, tickPeriod/2)
	}
	if s.core.holdsAny() {
		s.log.Info("Could not leave all ranges; their Leases end by themselves")
		return
	}
	if err := s.removeSelf(ctx); err != nil {
		s.log.Info("Could not remove the Lease of this replica; it ends by itself", "reason", err.Error())
	}
}

// removeSelf removes the own Lease. The last replica also marks the layout as released. Of replicas that end at the
// same time, each sees the Leases that are not removed yet.
func (s *Sharding) removeSelf(ctx context.Context) error {
	if s.core.self != nil {
		w := write{kind: removeLease, before: s.core.self, name: s.core.own}
		if _, err := s.send(ctx, w); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		s.core.self = nil
	}
	v, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.core.observe(v)
	if w, isLast := s.core.planReleasedLayout(); isLast {
		_, err = s.send(ctx, w)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// planReleasedLayout returns the write that marks the layout as released, so the next process that takes it does not
// wait. It is only for the last replica.
func (c *core) planReleasedLayout() (w write, isLast bool) {
	l := c.view.layout
	// A layout that did not exist before may have others that have not noticed yet.
	if l == nil || l.shards != c.Count || l.settling || c.opensFrom.After(c.view.requested) {
		return write{}, false
	}
	for name, s := range c.sightings {
		// A holder without a Lease may act, too.
		one := c.view.replicas[name]
		if name != c.own && !s.isDead && (one == nil || one.shards == c.Count) {
			return write{}, false
		}
	}
	// If a Lease was not released by its holder, but emptied, edited or removed, the holder may not have noticed yet.
	for _, shown := range c.shown {
		if !shown.lease.isReleased() && c.view.requested.Sub(shown.since) < leaseDuration {
			return write{}, false
		}
	}
	return write{
		kind: writeLayout, before: l, name: c.layout, seconds: releasedSeconds,
		annotations: map[string]string{shardsAnnotation: "", settlingAnnotation: ""},
	}, true
}

// holdsAny reports whether this process holds a range, or may not have left it.
func (c *core) holdsAny() bool {
	for _, r := range c.ranges {
		if r != nil {
			return true
		}
	}
	return false
}

// nextIdle returns a channel that is closed when a range that is left becomes idle; nil if no such range is busy.
func (c *core) nextIdle() <-chan struct{} {
	for i, r := range c.ranges {
		if r != nil && r.phase == leaving && c.gates[i].Busy() > 0 {
			return c.gates[i].Idle()
		}
	}
	return nil
}
