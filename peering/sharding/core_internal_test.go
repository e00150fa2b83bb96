package sharding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// script drives one core step by step, by the store of a simulation.
type script struct {
	t     *testing.T
	sim   *simulation
	r     *simulatedReplica
	after map[writeKind]func(write) error // called when a write of this kind was made
	// refused are the kinds of writes that fail.
	refused map[writeKind]bool
	written int // how often ranges were acquired, or written again
}

// newScript returns a core that serves its ranges.
func newScript(t *testing.T) *script {
	t.Helper()
	s := newSimulation(t, 1, 4)
	r := s.start()
	r.clock = 0
	s.events = nil // nothing happens by itself
	one := &script{t: t, sim: s, r: r}
	for range 10 {
		one.tick(2 * time.Second)
	}
	return one
}

// tick lets the time pass, and then makes one tick.
func (s *script) tick(later time.Duration) {
	s.sim.now = s.sim.now.Add(later)
	v := s.sim.store.view(len(s.r.gates))
	v.requested, v.received = s.sim.now, s.sim.now
	s.r.core.observe(v)
	for {
		batch := s.r.core.plan(s.sim.now)
		if len(batch) == 0 {
			return
		}
		for _, w := range batch {
			sent := s.sim.now
			if s.refused[w.kind] {
				s.r.core.confirm(w, sent, s.sim.now, nil, errNoAnswer)
				continue
			}
			result, err := s.sim.store.apply(w, s.r.core.names)
			if w.kind == acquireRange {
				s.written++
			}
			if after := s.after[w.kind]; after != nil && err == nil {
				err = after(w)
			}
			s.r.core.confirm(w, sent, s.sim.now, result, err)
		}
		s.r.core.settle(s.sim.now)
	}
}

// open returns the ranges whose gates are open.
func (s *script) open() (open []int) {
	for i, gate := range s.r.gates {
		if gate.acts() {
			open = append(open, i)
		}
	}
	return open
}

// change replaces a Lease as another client does.
func (s *script) change(index int, change func(l *lease)) {
	edited := *s.sim.store.ranges[4][index]
	change(&edited)
	s.sim.store.version++
	edited.version = fmt.Sprint(s.sim.store.version)
	s.sim.store.ranges[4][index] = &edited
	clear(s.sim.store.answers)
}

// TestTerms shows when gates are open, and how often the ranges are written.
func TestTerms(t *testing.T) {
	all := []int{0, 1, 2, 3}
	for name, tc := range map[string]struct {
		reason string
		do     func(s *script)
		open   []int
		writes int // of ranges
	}{
		"Renewed": {"renewals keep the gates open without writes of ranges", func(s *script) {
			for range 10 {
				s.tick(2 * time.Second)
			}
		}, all, 0},
		"Lapsed": {"the permission ends seven eighths of a lease duration after the list", func(s *script) {
			s.sim.now = s.sim.now.Add(13200 * time.Millisecond)
		}, nil, 0},
		"Again": {"after the end of a term, every range is written before it opens", func(s *script) {
			s.tick(14 * time.Second)
		}, all, 4},
		"LateAnswer": {"a renewal that is answered after the end of the term does not extend it", func(s *script) {
			s.after = map[writeKind]func(write) error{writeSelf: func(write) error {
				s.sim.now, s.after = s.sim.now.Add(4*time.Second), nil
				return nil
			}}
			s.tick(10 * time.Second)
		}, all, 4},
		"LostAnswer": {"a write without an answer counts as not made", func(s *script) {
			s.after = map[writeKind]func(write) error{acquireRange: func(w write) error {
				if w.index == 2 {
					return errNoAnswer
				}
				return nil
			}}
			s.tick(14 * time.Second)
		}, []int{0, 1, 3}, 4},
		"Removed": {"a removed Lease closes the gate at once, and who makes it again waits", func(s *script) {
			s.sim.store.ranges[4][1] = nil
			clear(s.sim.store.answers)
			s.tick(time.Second)
			s.tick(2 * time.Second)
		}, []int{0, 2, 3}, 1},
		"RemovedLongAgo": {"after a lease duration, it opens", func(s *script) {
			s.sim.store.ranges[4][1] = nil
			clear(s.sim.store.answers)
			for range 10 {
				s.tick(2 * time.Second)
			}
		}, all, 1},
		"Stolen": {"another holder closes the gate at once", func(s *script) {
			s.change(1, func(l *lease) { l.holder, l.replica = "other", "demo-replica-other" })
			s.tick(time.Second)
		}, []int{0, 2, 3}, 0},
		"Edited": {"an edit that keeps the holder needs one write", func(s *script) {
			s.change(1, func(l *lease) { l.seconds = 99 })
			s.tick(time.Second)
		}, all, 1},
		"SelfRemoved": {"without the own Lease, others take this process for dead: a new term begins", func(s *script) {
			clear(s.sim.store.replicas)
			clear(s.sim.store.answers)
			s.tick(time.Second)
		}, all, 4},
		"LayoutTaken": {"a layout of others closes all gates", func(s *script) {
			edited := *s.sim.store.layout
			edited.holder, edited.shards, edited.version = "elected", 0, "x"
			s.sim.store.layout = &edited
			clear(s.sim.store.answers)
			s.tick(time.Second)
		}, nil, 0},
		"LayoutStuck": {"a layout that cannot be renewed ends the permission before others take it", func(s *script) {
			s.refused = map[writeKind]bool{writeLayout: true}
			for range 13 {
				s.tick(2 * time.Second)
			}
			s.sim.now = s.sim.now.Add(time.Second)
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			if got := s.open(); !slices.Equal(got, all) {
				t.Fatalf("%v are open at the beginning, want all", got)
			}
			s.written = 0
			tc.do(s)
			if got := s.open(); !slices.Equal(got, tc.open) || s.written != tc.writes {
				t.Errorf("%s: %v are open after %d writes, want %v after %d", tc.reason, got, s.written, tc.open,
					tc.writes)
			}
		})
	}
}

// TestReleasedLayout shows when a process that ends marks the layout as released, so that the next one does not wait.
func TestReleasedLayout(t *testing.T) {
	empty := func(s *script) { s.change(1, func(l *lease) { l.seconds = 99 }) }
	remove := func(s *script) {
		s.sim.store.ranges[4][1] = nil
		clear(s.sim.store.answers)
	}
	end := func(s *script) {
		s.r.core.isEnding = true
		s.tick(time.Second)
	}
	for name, tc := range map[string]struct {
		reason   string
		do       []func(s *script)
		released bool
	}{
		"Last": {"the last replica releases the layout with its ranges", []func(s *script){end}, true},
		"Removed": {"a removed Lease may have had a holder that has not noticed yet",
			[]func(s *script){end, remove}, false},
		"RemovedLongAgo": {"after a lease duration, no holder of a removed Lease acts", []func(s *script){end, remove,
			func(s *script) { s.tick(time.Second) }, func(s *script) { s.tick(leaseDuration) }}, true},
		"Emptied": {"another client may have emptied a Lease", []func(s *script){end, empty}, false},
		"Waiting": {"a range that still waits for a former holder keeps the layout", []func(s *script){remove,
			func(s *script) { s.tick(time.Second) }, func(s *script) { s.tick(time.Second) }, end}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			for _, step := range tc.do {
				step(s)
			}
			v := s.sim.store.view(len(s.r.gates))
			v.requested, v.received = s.sim.now, s.sim.now
			s.r.core.observe(v)
			if _, released := s.r.core.planReleasedLayout(); released != tc.released {
				t.Errorf("%s: want released: %t, got %t", tc.reason, tc.released, released)
			}
		})
	}
}

// TestDelays shows when the next list follows.
func TestDelays(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for name, tc := range map[string]struct {
		reason  string
		again   bool
		death   time.Duration // the time until a silent replica is dead
		longest time.Duration
	}{
		"Usual":    {"without an event, the next list follows after a period", false, 0, tickPeriod},
		"Conflict": {"after a conflict, the next list follows soon", true, 0, conflictDelay},
		"Death":    {"the list follows as soon as a silent replica is dead", false, time.Second, time.Second},
		"Late":     {"a death after the next list does not delay it", false, time.Minute, tickPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			for _, random := range []func(time.Duration) time.Duration{
				func(time.Duration) time.Duration { return 0 },
				func(limit time.Duration) time.Duration { return limit },
			} {
				got := (&core{nextDeath: now.Add(tc.death)}).nextDelay(now, tc.again, random)
				if got > tc.longest || got < tc.longest/2 {
					t.Errorf("%s: got %v, want at most %v and at least half of it", tc.reason, got, tc.longest)
				}
			}
		})
	}
}

// TestStandbyOfHeldRanges shows that a replica whose ranges are all closed names the time until which it waits.
func TestStandbyOfHeldRanges(t *testing.T) {
	s := newScript(t)
	if got := s.r.core.describeStandby(); got != "" {
		t.Errorf("a replica with open ranges must not be on standby: got %q", got)
	}
	clear(s.sim.store.ranges[4])
	clear(s.sim.store.answers)
	s.tick(time.Second)
	if got := s.r.core.describeStandby(); !strings.HasPrefix(got, "It holds 4 ranges. A former holder may act until") {
		t.Errorf("a replica that waits for the former holders of its ranges must say so: got %q", got)
	}
}
