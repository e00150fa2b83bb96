package sharding

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Begin marks the start: from now on, [Sharding.CheckReady] fails until the state is known. It returns a function that
// shares the ranges until the process exits or the context ends. Then it leaves each range as soon as it is idle. The
// context ends when all handlers have returned. A nil channel never closes.
func (s *Sharding) Begin(ctx context.Context, exiting <-chan struct{}) (run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.log = true, logf.FromContext(ctx).WithValues("lease", s.core.Lease.String())
	s.core.log = s.log
	return func() { s.run(ctx, exiting) }
}

// run shares the ranges until the process exits or the context ends, and then leaves them.
func (s *Sharding) run(ctx context.Context, exiting <-chan struct{}) {
	sharing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-sharing.Done():
		case <-exiting:
			cancel()
		}
	}()
	for sharing.Err() == nil {
		again, _ := s.tick(sharing)
		s.wait(sharing, s.core.nextDelay(time.Now(), again, rand.N[time.Duration]))
	}
	s.leave(ctx)
}

// tick lists all Leases, and makes the writes that are due. It returns true if another replica was faster in acquiring
// a range, and the first error.
func (s *Sharding) tick(ctx context.Context) (again bool, err error) {
	defer s.publish()
	v, err := s.list(ctx)
	if err != nil {
		s.noteFailure(ctx, err)
		s.core.checkLapse(time.Now())
		return false, err
	}
	end := v.requested.Add(batchTime)
	s.core.observe(v)
	var failure error
	for {
		batch := s.core.plan(time.Now())
		if len(batch) == 0 {
			break
		}
		conflict, err := s.execute(ctx, batch, end)
		again, failure = again || conflict, cmp.Or(failure, err)
		s.core.settle(time.Now())
	}
	s.noteFailure(ctx, failure)
	return again, failure
}

// nextDelay returns the time until the next tick. It comes as soon as a silent replica is dead.
func (c *core) nextDelay(now time.Time, again bool, random func(time.Duration) time.Duration) time.Duration {
	if again {
		return conflictDelay - random(conflictDelay/2)
	}
	delay := tickPeriod - random(tickPeriod/5)
	if left := c.nextDeath.Sub(now); left > 0 && left < delay {
		return left
	}
	return delay
}

// wait blocks for some time, until the context ends, or until a range that is left becomes idle. Of several such
// ranges, it watches one.
func (s *Sharding) wait(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.core.nextIdle():
	}
}
