package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// These are further kinds of steps, for replicas that share the objects.
const (
	stepJoin    = "join"    // a further replica runs for some time
	stepRestart = "restart" // the API server is stopped, and started again

	// serverIdentity is who the steps of the API server happen to.
	serverIdentity = "server"
)

// sharedLease is the lease duration of replicas.
const sharedLease = 15 * time.Second

// newSharedPlan returns the disturbances of replicas that share the objects. Most of them are shorter than a lease, or
// longer, at random.
func newSharedPlan(seed uint64, replicas int, length time.Duration) (steps []step) {
	random := rand.New(rand.NewPCG(seed, 46)) //nolint:gosec // no secret
	kinds := []string{stepKill, stepFreeze, stepHold, stepCut, stepLeave, stepJoin, stepRestart}
	for at := time.Duration(0); ; {
		if len(steps)%len(kinds) == 0 {
			random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		}
		one := step{
			kind: kinds[len(steps)%len(kinds)], target: random.IntN(replicas),
			delay: between(random, time.Second, 10*time.Second),
		}
		switch one.kind {
		case stepFreeze, stepHold, stepCut:
			one.duration = between(random, time.Second, sharedLease/2)
			if random.IntN(2) == 0 {
				one.duration = between(random, sharedLease+time.Second, sharedLease*3/2)
			}
		case stepJoin:
			one.duration = between(random, sharedLease/2, sharedLease*3/2)
		default:
			one.duration = between(random, 0, sharedLease/2)
		}
		if at += one.delay; at > length {
			return steps
		}
		steps = append(steps, one)
	}
}

// playShared has the steps happen, and returns when all are over.
func (r *sharedRun) playShared(steps []step) {
	restarting := make(chan struct{}, 1)
	for _, s := range steps {
		time.Sleep(s.delay)
		switch m := (*member)(nil); s.kind {
		case stepRestart:
			r.fleet.runningSteps.Go(func() {
				restarting <- struct{}{}
				defer func() { <-restarting }()
				r.ledger.add(report{Kind: stepRestart, By: serverIdentity, Text: s.duration.String()})
				if err := r.server.restart(s.duration); err != nil {
					r.t.Errorf("restarting the API server: %v", err)
				}
				r.ledger.add(report{Kind: "healed", By: serverIdentity})
			})
		case stepJoin:
			r.fleet.runningSteps.Go(func() { r.joinFor(s.duration) })
		default:
			if m = r.fleet.target(s.target); m != nil {
				r.fleet.runningSteps.Go(func() { m.executeStep(s) })
			}
		}
	}
	r.fleet.runningSteps.Wait()
}

// joinFor runs a further replica for some time.
func (r *sharedRun) joinFor(duration time.Duration) {
	r.mu.Lock()
	r.joined++
	name := fmt.Sprint("joined", r.joined)
	r.mu.Unlock()
	r.ledger.add(report{Kind: stepJoin, By: name + ".1", Text: "for " + duration.String()})
	about := r.replica(name, 0)
	m := r.fleet.add(about, false)
	m.start()
	time.Sleep(duration)
	r.ledger.add(report{Kind: stepLeave, By: name + ".1"})
	m.terminate(syscall.SIGTERM)
	r.ledger.add(report{Kind: "left", By: name + ".1"})
}
