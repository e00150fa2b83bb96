package sharding

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/storms"
)

// disturb lets replicas die, stand still, and lose their connection or the answers at random, and changes Leases.
func (s *simulation) disturb() {
	s.after(s.delay(8*time.Second), func() {
		if s.isCalm {
			return
		}
		defer s.disturb()
		if len(s.replicas) < 2 {
			s.start()
			return
		}
		r := s.replicas[s.dice.IntN(len(s.replicas))]
		until := s.now.Add(s.delay(40 * time.Second))
		switch s.dice.IntN(11) {
		case 0:
			s.kill(r)
		case 1:
			s.end(r)
		case 2:
			if s.dice.IntN(3) == 0 {
				s.shards = 10 - s.shards
			}
			if len(s.replicas) < 6 {
				s.start()
			}
		case 3, 4:
			r.frozenUntil = until
		case 5:
			r.cutUntil = until
		case 6:
			r.losesUntil = until
		case 7:
			for _, one := range s.replicas {
				one.cutUntil = until
			}
		case 8:
			r.slowUntil = until
		default:
			s.edit()
		}
	})
}

// edit changes or removes one Lease, as another client may do.
func (s *simulation) edit() {
	clear(s.store.answers)
	holders := []string{"", "nobody", layoutHolder + "4"}
	for _, r := range s.replicas {
		holders = append(holders, r.core.Identity)
	}
	change := func(l *lease) *lease {
		if l == nil || s.dice.IntN(2) == 0 {
			return nil
		}
		edited := *l
		s.store.version++
		edited.version = fmt.Sprint(s.store.version)
		edited.holder, edited.replica, edited.seconds = holders[s.dice.IntN(len(holders))], "", 2+s.dice.IntN(100)
		if edited.holder != "" {
			edited.replica = names{layout: "demo"}.replicaOf(edited.holder)
		}
		return &edited
	}
	switch s.dice.IntN(4) {
	case 0:
		if s.store.layout = change(s.store.layout); s.store.layout != nil {
			s.store.layout.shards = 0
		}
	case 1:
		if all := slices.Sorted(maps.Keys(s.store.replicas)); len(all) > 0 {
			name := all[s.dice.IntN(len(all))]
			if s.store.replicas[name] = change(s.store.replicas[name]); s.store.replicas[name] == nil {
				delete(s.store.replicas, name)
			}
		}
	default:
		i := s.dice.IntN(s.shards)
		s.store.ranges[s.shards][i] = change(s.store.ranges[s.shards][i])
	}
}

// TestSimulatedStorm shows that replicas with clocks an hour apart never have two open gates of a range, and serve all
// ranges when the storm is over. They die, stand still between any two steps, lose requests or answers, find edited or
// removed Leases, and have one of two numbers of ranges. The seed is the name of the case; SEED repeats it.
func TestSimulatedStorm(t *testing.T) {
	for range storms.Count(t, 20, 300) {
		seed := storms.Seed(t)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSimulation(t, seed, 6, 4)
			for range 4 {
				s.start()
			}
			s.disturb()
			s.run(time.Hour)
			s.isCalm, s.shards = true, 6
			for _, r := range slices.Clone(s.replicas) {
				if len(r.gates) != s.shards {
					s.kill(r)
				}
			}
			s.start()
			s.run(4 * time.Minute)
			if s.overlaps > 0 {
				t.Errorf("two gates of one range were open at once, %d times", s.overlaps)
			}
			for i := range s.shards {
				if s.served[s.shards][i].until.Before(s.now) {
					t.Errorf("range %d is not served after the storm", i)
				}
			}
		})
	}
}
