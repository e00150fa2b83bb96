package sharding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// silentAfter is how old the renewal of a live replica may look. Replicas renew their Leases every few seconds, so most
// of this time is for clocks that differ.
const silentAfter = 2 * time.Minute

// Replica is one live process.
type Replica struct {
	Identity string    `json:"identity"`
	Count    int       `json:"shards"` // its number of ranges; it waits if the layout has another one
	Ranges   []int     `json:"ranges"` // that it holds, sorted
	Leaving  bool      `json:"leaving,omitempty"`
	Paused   bool      `json:"paused,omitempty"` // by the peers
	Load     Load      `json:"load"`
	Renewed  time.Time `json:"renewed,omitzero"` // when it renewed its Lease, by its own clock
	Silent   bool      `json:"silent,omitempty"` // by [ReadStatus] only: it has not renewed its Lease for minutes
}

// Unowned is a range that no live replica holds.
type Unowned struct {
	Index int `json:"index"`
	// Since is when this process first noticed it; after the death of a holder, when its last renewal was seen.
	Since time.Time `json:"since,omitzero"`
}

// Status is the state of the ranges as one process sees it.
type Status struct {
	// Identity is the name of this process; empty for a tool.
	Identity string `json:"identity,omitempty"`
	// Count is the number of ranges of the layout; zero if the layout is not one of ranges.
	Count int `json:"shards"`
	// Elected is the process that handles all objects by the election of a leader, if the layout is not one of ranges.
	Elected string `json:"elected,omitempty"`
	// Replicas are the live ones, sorted by identity.
	Replicas []Replica `json:"replicas"`
	// Unowned are the ranges without an owner, sorted. They are not known to a process that awaits its layout.
	Unowned []Unowned `json:"unowned"`
	// Own are the ranges that this process holds, and Open those whose gates are open. They are sorted.
	Own, Open []int `json:"-"`
	// Moves are those of this process.
	Moves Moves `json:"-"`
	// AwaitsLayout is true if this process waits for replicas with another number of ranges, or for an elected one.
	AwaitsLayout bool `json:"-"`
}

// Status returns the state as of the last list.
func (s *Sharding) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// ReadStatus returns the state of the ranges in each namespace that has such Leases, by one list. Without a namespace,
// it lists those of all namespaces. The numbers of ranges are those of the layouts.
//
// One list does not show who has died in the last minutes, nor since when a range has had no owner. A replica whose
// Lease looks older than that is silent, and its ranges have no owner.
//
// # Errors
//
// It returns the error of the list.
func ReadStatus(
	ctx context.Context, leases coordinationv1client.LeasesGetter, lease types.NamespacedName,
) (map[string]Status, error) {
	n := names{layout: lease.Name}
	items, err := listLeases(ctx, leases.Leases(lease.Namespace), n)
	if err != nil {
		return nil, fmt.Errorf("listing the Leases of %s: %w", lease, err)
	}
	byNamespace, all := map[string][]coordinationv1.Lease{}, map[string]Status{}
	for _, one := range items {
		byNamespace[one.Namespace] = append(byNamespace[one.Namespace], one)
	}
	for namespace, own := range byNamespace {
		n.shards = 0
		if i := slices.IndexFunc(own, func(one coordinationv1.Lease) bool { return one.Name == n.layout }); i >= 0 {
			n.shards = n.parse(&own[i]).shards
		}
		status := n.parseView(own).status(func(string) bool { return false })
		status.markSilent(time.Now())
		all[namespace] = status
	}
	return all, nil
}

// markSilent marks the replicas that have not renewed their Leases. Their ranges have no owner.
func (s *Status) markSilent(now time.Time) {
	for i := range s.Replicas {
		one := &s.Replicas[i]
		if one.Silent = now.Sub(one.Renewed) > silentAfter; !one.Silent {
			continue
		}
		for _, index := range one.Ranges {
			s.Unowned = append(s.Unowned, Unowned{Index: index})
		}
	}
	slices.SortFunc(s.Unowned, func(a, b Unowned) int { return a.Index - b.Index })
}

// status returns the replicas and their ranges. The function reports whether a replica is dead.
func (v view) status(isDead func(name string) bool) Status {
	status := Status{Replicas: []Replica{}, Unowned: []Unowned{}}
	if v.layout != nil {
		status.Count = v.layout.shards
	}
	if v.layout != nil && v.layout.shards == 0 {
		status.Elected = v.layout.holder
	}
	ranges := map[string][]int{}
	for i, one := range v.ranges {
		if one == nil || v.replicas[one.replica] == nil || isDead(one.replica) {
			status.Unowned = append(status.Unowned, Unowned{Index: i})
			continue
		}
		ranges[one.replica] = append(ranges[one.replica], i)
	}
	for name, one := range v.replicas {
		if !isDead(name) {
			status.Replicas = append(status.Replicas, Replica{
				Identity: one.holder, Count: one.shards, Ranges: append([]int{}, ranges[name]...), Leaving: one.leaving,
				Paused: one.paused, Load: one.load, Renewed: one.renewed,
			})
		}
	}
	slices.SortFunc(status.Replicas, func(a, b Replica) int { return strings.Compare(a.Identity, b.Identity) })
	return status
}

// status returns the state as of the last list. Writes since then show in the own ranges only.
func (c *core) status() Status {
	status := c.view.status(func(name string) bool { return c.sightings[name].isDead })
	status.Unowned = []Unowned{}
	status.AwaitsLayout = c.view.layout != nil && c.view.layout.shards != c.Count
	for i, r := range c.ranges {
		if since := c.shown[i].ownerless; !since.IsZero() && !status.AwaitsLayout {
			status.Unowned = append(status.Unowned, Unowned{Index: i, Since: since})
		}
		if r != nil {
			status.Own = append(status.Own, i)
		}
		if r != nil && r.phase == serving {
			status.Open = append(status.Open, i)
		}
	}
	status.Identity, status.Moves = c.Identity, c.moves
	return status
}

// publish makes the state visible for other goroutines.
func (s *Sharding) publish() {
	status, standby := s.core.status(), s.core.describeStandby()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.standby = status, standby
}

// describeStandby returns why no range is open, or "". It returns "" also while the peers pause the operator.
func (c *core) describeStandby() string {
	if c.isPausedNow() {
		return ""
	}
	var opens time.Time
	held := 0
	for _, r := range c.ranges {
		if r == nil {
			continue
		}
		if r.phase == serving {
			return ""
		}
		held, opens = held+1, r.opens
	}
	switch layout := c.view.layout; {
	case layout != nil && layout.shards != 0 && layout.shards != c.Count:
		return fmt.Sprintf("This replica has %d ranges. It waits until all replicas with %d have ended.", c.Count,
			layout.shards)
	case layout != nil && layout.shards == 0 && layout.holder != "":
		return fmt.Sprintf("%q holds the Lease %s. This replica shares ranges when that process has ended.",
			layout.holder, c.Lease)
	case !c.inTerm:
		return fmt.Sprintf("It does not take part in sharing the ranges of %s yet.", c.Lease)
	case held > 0 && !opens.IsZero():
		return fmt.Sprintf("It holds %d ranges. A former holder may act until %s.", held,
			opens.UTC().Format(time.RFC3339))
	}
	return "Other replicas hold all ranges, or as many as this replica may hold."
}

// CheckReady returns an error until the Leases could be read, and while there is no right on them. A replica without
// ranges is ready.
func (s *Sharding) CheckReady() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.begun && s.failure != nil && (!s.isListed || apierrors.IsForbidden(s.failure)):
		return fmt.Errorf("the Leases of %s cannot be used: %w", s.core.Lease, s.failure)
	case s.begun && !s.isListed:
		return fmt.Errorf("it is not known yet which process holds the ranges of %s", s.core.Lease)
	}
	return nil
}

// DescribeStandby returns why this process serves no range, or "" if it does.
func (s *Sharding) DescribeStandby() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil && s.standby != "" {
		return fmt.Sprintf("The Leases of %s cannot be used: %v.", s.core.Lease, s.failure)
	}
	return s.standby
}
