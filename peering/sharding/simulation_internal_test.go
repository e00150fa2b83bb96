package sharding

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// simulation runs many cores in virtual time, without goroutines. Each request takes some time, takes effect within it,
// and may be lost.
type simulation struct {
	t      *testing.T
	dice   *rand.Rand
	now    time.Time
	events eventQueue
	store  simulatedStore
	shards int  // of replicas that start
	isCalm bool // nothing is disturbed any more

	replicas []*simulatedReplica // that are alive
	started  int
	served   map[int][]coverage // by number of ranges
	overlaps int

	lists, writes, listedBytes int
	moves, least               int
	// ideal is how many ranges each one had if nothing moved needlessly.
	ideal map[*simulatedReplica]int
}

// coverage is the history of the open gates of one range.
type coverage struct {
	gates []*simulatedGate // that are not closed
	owner *simulatedReplica
	until time.Time // when the last open gate has closed, or will close
	gap   time.Duration
	sum   time.Duration // of all gaps
}

// simulatedReplica is one process. Its clock differs from that of others.
type simulatedReplica struct {
	s           *simulation
	core        *core
	gates       []*simulatedGate
	clock       time.Duration // how far its clock is ahead
	isDead      bool
	isEnding    bool
	frozenUntil time.Time
	cutUntil    time.Time
	losesUntil  time.Time // its requests take effect, but the answers are lost
	slowUntil   time.Time // its requests take effect late, maybe after their timeout
}

// simulatedGate is the gate of one range in one process.
type simulatedGate struct {
	replica *simulatedReplica
	index   int
	isOpen  bool
	until   time.Time // by the clock of the replica
}

// local returns the time by the clock of the replica.
func (r *simulatedReplica) local() time.Time { return r.s.now.Add(r.clock) }

// acts reports whether the gate permits something now.
func (g *simulatedGate) acts() bool {
	return g.isOpen && !g.replica.isDead && g.replica.local().Before(g.until)
}

// coverage returns the history of the range of the gate.
func (g *simulatedGate) coverage() *coverage {
	return &g.replica.s.served[len(g.replica.gates)][g.index]
}

func (g *simulatedGate) Set(closed bool) {
	c := g.coverage()
	if g.acts() && closed {
		c.until = g.replica.s.now
	}
	if closed == g.isOpen {
		if g.isOpen = !closed; g.isOpen {
			c.gates = append(c.gates, g)
		} else {
			c.gates = slices.DeleteFunc(c.gates, func(one *simulatedGate) bool { return one == g })
		}
	}
	g.note()
}

func (g *simulatedGate) AllowWritesUntil(until time.Time) {
	g.until = until
	g.note()
}

func (*simulatedGate) Busy() int             { return 0 }
func (*simulatedGate) Idle() <-chan struct{} { return nil }

// note counts gaps, moves, and open gates in two processes.
func (g *simulatedGate) note() {
	if !g.acts() {
		return
	}
	s, c := g.replica.s, g.coverage()
	for _, other := range c.gates {
		if other != g && other.acts() {
			s.overlaps++
		}
	}
	for shards, all := range s.served {
		for i := range all {
			if shards != len(g.replica.gates) && slices.ContainsFunc(all[i].gates, (*simulatedGate).acts) {
				s.overlaps++
			}
		}
	}
	if !c.until.IsZero() && s.now.After(c.until) {
		gap := s.now.Sub(c.until)
		c.gap, c.sum = max(c.gap, gap), c.sum+gap
	}
	if c.owner != g.replica {
		if c.owner != nil {
			s.moves++
		}
		c.owner = g.replica
	}
	c.until = g.until.Add(-g.replica.clock)
}

// simulatedStore has the Leases.
type simulatedStore struct {
	version  int
	layout   *lease
	replicas map[string]*lease
	ranges   map[int][]*lease // by number of ranges
	answers  map[int]view     // of lists since the last write
}

// at returns the place of a Lease.
func (s *simulatedStore) at(w write, n names) (stored *lease, set func(*lease)) {
	switch {
	case w.name == n.layout:
		return s.layout, func(l *lease) { s.layout = l }
	case w.kind == acquireRange, w.kind == releaseRange, w.kind == freeRange:
		return s.ranges[n.shards][w.index], func(l *lease) { s.ranges[n.shards][w.index] = l }
	default:
		rest, _ := strings.CutPrefix(w.name, n.layout)
		if shards, index, isRange := parseRange(rest); isRange {
			return s.ranges[shards][index], func(l *lease) { s.ranges[shards][index] = l }
		}
		return s.replicas[w.name], func(l *lease) {
			if s.replicas[w.name] = l; l == nil {
				delete(s.replicas, w.name)
			}
		}
	}
}

// apply makes a write as the API server does.
func (s *simulatedStore) apply(w write, n names) (*lease, error) {
	leases := schema.GroupResource{Resource: "leases"}
	stored, set := s.at(w, n)
	switch {
	case w.before == nil && stored != nil:
		return nil, apierrors.NewAlreadyExists(leases, w.name)
	case w.before != nil && stored == nil:
		return nil, apierrors.NewNotFound(leases, w.name)
	case w.before != nil && stored.version != w.before.version:
		return nil, apierrors.NewConflict(leases, w.name, errors.New("changed"))
	case w.kind == removeLease:
		clear(s.answers)
		set(nil)
		return nil, nil //nolint:nilnil // it is removed
	}
	s.version++
	clear(s.answers)
	l := &lease{name: w.name, uid: w.name, version: strconv.Itoa(s.version), holder: w.holder, seconds: w.seconds}
	if w.before == nil {
		l.uid += l.version
	}
	if w.holder != "" {
		l.replica = n.replicaOf(w.holder)
	}
	l.shards, _ = strconv.Atoi(w.annotations[shardsAnnotation])
	l.settling, l.leaving = w.annotations[settlingAnnotation] != "", w.annotations[leavingAnnotation] != ""
	set(l)
	return l, nil
}

// view returns the answer of a list.
func (s *simulatedStore) view(shards int) view {
	if answer, ok := s.answers[shards]; ok {
		return answer
	}
	v := view{layout: s.layout, isLayoutKnown: true, ranges: slices.Clone(s.ranges[shards])}
	for other, all := range s.ranges {
		for _, one := range all {
			if other != shards && one != nil {
				v.obsolete = append(v.obsolete, one)
			}
		}
	}
	v.replicas = make(map[string]*lease, len(s.replicas))
	for name, one := range s.replicas {
		v.replicas[name] = one
	}
	s.answers[shards] = v
	return v
}

// newSimulation returns a simulation without replicas. They may have one of several numbers of ranges.
func newSimulation(t *testing.T, seed uint64, shards ...int) *simulation {
	t.Helper()
	s := &simulation{
		t: t, dice: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(0, 0), shards: shards[0], //nolint:gosec // no secret
		store: simulatedStore{
			replicas: map[string]*lease{}, ranges: map[int][]*lease{}, answers: map[int]view{},
		},
		served: map[int][]coverage{}, ideal: map[*simulatedReplica]int{},
	}
	for _, n := range shards {
		s.store.ranges[n], s.served[n] = make([]*lease, n), make([]coverage, n)
	}
	return s
}

// start starts a replica.
func (s *simulation) start() *simulatedReplica {
	s.started++
	r := &simulatedReplica{s: s, clock: time.Duration(s.dice.IntN(7200)-3600) * time.Second}
	o := Options{Identity: fmt.Sprint("replica-", s.started), Count: s.shards, SetRanges: func([]int) {}}
	o.Lease.Name = "demo"
	for i := range s.shards {
		r.gates = append(r.gates, &simulatedGate{replica: r, index: i})
	}
	o.GateFor = func(i int) peering.AttemptGate { return r.gates[i] }
	r.core = newCore(o)
	r.core.jitter = func() time.Duration { return s.delay(2 * time.Second) }
	s.replicas = append(s.replicas, r)
	s.joinIdeal(r)
	r.after(s.delay(time.Second), r.tick)
	return r
}

// kill ends a process without any further request.
func (s *simulation) kill(r *simulatedReplica) {
	for _, gate := range r.gates {
		if gate.acts() {
			gate.coverage().until = s.now
		}
	}
	r.isDead = true
	s.replicas = slices.DeleteFunc(s.replicas, func(one *simulatedReplica) bool { return one == r })
	s.leaveIdeal(r)
}

// end lets a process leave its ranges.
func (s *simulation) end(r *simulatedReplica) {
	r.core.isEnding, r.isEnding = true, true
	s.replicas = slices.DeleteFunc(s.replicas, func(one *simulatedReplica) bool { return one == r })
	s.leaveIdeal(r)
}

// joinIdeal counts the least possible number of moves when a replica starts: the ranges above the limit.
func (s *simulation) joinIdeal(r *simulatedReplica) {
	s.ideal[r] = 0
	if len(s.ideal) == 1 {
		s.ideal[r] = s.shards
		return
	}
	surplus, limit := 0, (s.shards+len(s.ideal)-1)/len(s.ideal)
	for one, n := range s.ideal {
		surplus += max(0, n-limit)
		s.ideal[one] = min(n, limit)
	}
	s.least += surplus
	s.spreadIdeal(surplus)
}

// leaveIdeal counts the least possible number of moves when a replica ends: its ranges.
func (s *simulation) leaveIdeal(r *simulatedReplica) {
	orphans := s.ideal[r]
	delete(s.ideal, r)
	s.least += orphans
	s.spreadIdeal(orphans)
}

// spreadIdeal gives each range to the replica that has the fewest.
func (s *simulation) spreadIdeal(ranges int) {
	for range ranges {
		var fewest *simulatedReplica
		for one, n := range s.ideal {
			if fewest == nil || n < s.ideal[fewest] {
				fewest = one
			}
		}
		s.ideal[fewest]++
	}
}

// delay returns a random time below the limit.
func (s *simulation) delay(limit time.Duration) time.Duration {
	return time.Duration(s.dice.Int64N(int64(limit)) + 1)
}

// run lets the time pass.
func (s *simulation) run(duration time.Duration) {
	end := s.now.Add(duration)
	for len(s.events) > 0 && !s.events[0].at.After(end) {
		next := heap.Pop(&s.events).(event) //nolint:forcetypeassert // it has nothing else
		s.now = next.at
		next.do()
	}
	s.now = end
}

// after calls a function of the whole world.
func (s *simulation) after(delay time.Duration, do func()) {
	s.started++
	heap.Push(&s.events, event{at: s.now.Add(delay), do: do})
}

// event is something that happens at a time.
type event struct {
	at time.Time
	do func()
}

type eventQueue []event

func (q eventQueue) Len() int           { return len(q) }
func (q eventQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q eventQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)        { *q = append(*q, x.(event)) } //nolint:forcetypeassert // as above

func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return x
}
