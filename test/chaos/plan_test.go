package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// plan is what a seed makes: five operators, and what happens to them.
type plan struct {
	priorities   []int
	clockOffsets []time.Duration
	steps        []step
}

// step is something that happens to one operator, and is over after some time.
type step struct {
	delay    time.Duration // the step before
	kind     string
	target   int // the index of the operator; negative is the one that acts
	duration time.Duration
}

// These are the kinds of steps.
const (
	stepKill   = "kill"   // and start it again
	stepLeave  = "leave"  // ask it to end, and start it again
	stepFreeze = "freeze" // stop the process, and have it go on
	stepHold   = "hold"   // deliver nothing, until it is healed
	stepCut    = "cut"    // break all connections, until it is healed
)

// disturbances are the events after which operators may need some time until they act.
var disturbances = []string{stepKill, stepLeave, stepFreeze, stepHold, stepCut, "killed", "left", "started", "thawed",
	"healed"}

func newPlan(seed uint64, operators int, length, lifetime time.Duration) (p plan) {
	random := rand.New(rand.NewPCG(seed, 14)) //nolint:gosec // no secret
	for i := range operators {
		p.priorities = append(p.priorities, random.IntN(10))
		p.clockOffsets = append(p.clockOffsets, time.Duration(random.IntN(60_000)-30_000)*time.Millisecond)
		if i == 1 { // two are of one priority, and the clocks of two are a minute apart
			p.priorities[1] = p.priorities[0]
			p.clockOffsets[0], p.clockOffsets[1] = -30*time.Second, 30*time.Second
		}
	}
	kinds := []string{stepKill, stepFreeze, stepHold, stepCut, stepLeave}
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for at := time.Duration(0); ; {
		one := step{delay: between(random, lifetime/5, lifetime*3/2), target: random.IntN(operators)}
		one.kind = kinds[len(p.steps)%len(kinds)] // each of them has its turn
		if random.IntN(3) > 0 {
			one.target = -1
		}
		one.duration = between(random, lifetime/3, 2*lifetime)
		if random.IntN(4) == 0 { // sometimes nothing happens for long enough
			one.delay += lifetime + 10*time.Second
		}
		if at += one.delay; at > length {
			return p
		}
		p.steps = append(p.steps, one)
	}
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

func (p plan) String() string {
	lines := []string{fmt.Sprintf("priorities %v, clocks %v", p.priorities, p.clockOffsets)}
	for _, s := range p.steps {
		lines = append(lines, fmt.Sprintf("after %s: %s %d for %s", s.delay, s.kind, s.target, s.duration))
	}
	return strings.Join(lines, "\n")
}
