package sharding

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// writeKind is the purpose of a write.
type writeKind int

const (
	writeSelf    writeKind = iota // the own Lease is made or renewed
	writeLayout                   // the layout is made, taken or renewed
	acquireRange                  // a range is acquired, or written again in a new term
	releaseRange
	freeRange   // a range without a holder that can act is marked as released, for another replica
	removeLease // a Lease of the past is removed
)

// write is one write that the core has planned. It fails if the Lease has another version than before.
type write struct {
	kind        writeKind
	index       int    // of the range
	before      *lease // nil makes the Lease
	name        string
	holder      string
	seconds     int
	annotations map[string]string // an empty value removes the annotation
}

// plan returns the next writes, which do not depend on each other. It is called until there are none. Each write is
// planned once for each list.
func (c *core) plan(now time.Time) []write {
	c.checkLapse(now)
	if c.isRenewalDue(now) && !c.isRenewed {
		c.isRenewed = true
		return []write{c.planSelf()}
	}
	if c.self == nil {
		return nil
	}
	if !c.isLayoutDone {
		c.isLayoutDone = true
		if w, due := c.planLayout(now); due {
			return []write{w}
		}
	}
	if (c.inTerm || c.isEnding) && !c.isRangesDone {
		c.isRangesDone = true
		if all := c.planRanges(now); len(all) > 0 {
			return all
		}
	}
	if c.inTerm && c.isFirst && !c.isCleaned && !c.mayNotRemove {
		c.isCleaned = true
		return c.planRemovals()
	}
	return nil
}

// isRenewalDue reports whether to write the own Lease. A term begins with a renewal.
func (c *core) isRenewalDue(now time.Time) bool {
	return !c.inTerm || c.self == nil || c.self.leaving != c.isEnding || c.self.paused != c.isPaused ||
		now.Sub(c.renewedAt) >= renewInterval
}

// planSelf returns the renewal of the own Lease.
func (c *core) planSelf() write {
	notes := map[string]string{
		shardsAnnotation: strconv.Itoa(c.Count), leavingAnnotation: "", pausedAnnotation: "", loadAnnotation: "",
	}
	if c.isEnding {
		notes[leavingAnnotation] = "true"
	}
	if c.isPaused {
		notes[pausedAnnotation] = "true"
	}
	if c.Load != nil {
		text, _ := json.Marshal(c.Load()) // it consists of numbers
		notes[loadAnnotation] = string(text)
	}
	return write{
		kind: writeSelf, before: c.self, name: c.own, holder: c.Identity, seconds: int(leaseDuration / time.Second),
		annotations: notes,
	}
}

// planLayout returns the write of the layout that is due. A process without a term needs one to begin it.
func (c *core) planLayout(now time.Time) (w write, due bool) {
	l := c.view.layout
	switch {
	case !c.view.isLayoutKnown, !c.inTerm && (c.isEnding || !c.isConfirmed):
	case l == nil, l.isReleased():
		due = true
	case l.shards == c.Count:
		due = !c.inTerm || c.view.requested.Sub(c.layoutSince) >= layoutInterval+c.layoutJitter ||
			l.settling && !now.Before(c.opensFrom)
	default:
		due = c.isLayoutAbandoned()
	}
	settling := ""
	if l == nil || l.settling && (!c.inTerm || now.Before(c.opensFrom)) {
		settling = "true"
	}
	return write{
		kind: writeLayout, before: l, name: c.layout, holder: layoutHolder + strconv.Itoa(c.Count),
		seconds:     int(layoutDuration / time.Second),
		annotations: map[string]string{shardsAnnotation: strconv.Itoa(c.Count), settlingAnnotation: settling},
	}, due
}

// isLayoutAbandoned reports whether no process acts by the present layout of others. The list shows it and the replicas
// at the same time, and each replica writes it before it acts.
func (c *core) isLayoutAbandoned() bool {
	l := c.view.layout
	if c.view.requested.Sub(c.layoutSince) < l.duration() {
		return false
	}
	for name, one := range c.view.replicas {
		if l.shards != 0 && one.shards == l.shards && !c.sightings[name].isDead {
			return false
		}
	}
	return true
}

// planRanges returns the writes of ranges: those that are given back, those of before this term, and missing ones.
func (c *core) planRanges(now time.Time) (all []write) {
	limit := c.rangeLimit()
	if c.isEnding || c.yields {
		limit = 0
	}
	held := c.leaveSurplus(limit, now)
	for i, r := range c.ranges {
		switch {
		case r == nil:
		case r.phase == leaving && (c.gates[i].Busy() == 0 || !c.isEnding && !now.Before(r.leaveBy)):
			all = append(all, c.planRelease(i, now))
		case r.phase == stale && c.inTerm:
			all = append(all, c.planAcquisition(i))
		}
	}
	if c.inTerm && !c.isEnding && c.isAnyOwnerless {
		all = append(all, c.planFree(limit-held, now)...)
	}
	c.settle(now)
	return all
}

// rangeLimit returns how many ranges a replica may hold.
func (c *core) rangeLimit() int {
	live := max(c.live, 1)
	return (c.Count + live - 1) / live
}

// leaveSurplus begins to leave the ranges above the limit, those first that were acquired last. It returns how many are
// held after that.
func (c *core) leaveSurplus(limit int, now time.Time) int {
	var held []int
	for i, r := range c.ranges {
		if r != nil && r.phase != leaving {
			held = append(held, i)
		}
	}
	if len(held) <= limit {
		return len(held)
	}
	slices.SortFunc(held, func(a, b int) int { return cmp.Compare(c.ranges[a].sequence, c.ranges[b].sequence) })
	for _, i := range held[limit:] {
		c.gates[i].Set(true)
		c.ranges[i].phase, c.ranges[i].leaveBy = leaving, now.Add(leaseDuration)
	}
	return limit
}

// planRelease returns the release of a range. The range is not used again without another acquisition, because the
// result of the write may remain unknown. The next holder waits for a lease duration if an attempt is still running, or
// if a former holder may still act.
func (c *core) planRelease(i int, now time.Time) write {
	r, seconds := c.ranges[i], releasedSeconds
	if r.own == nil || r.opens.After(now) || c.gates[i].Busy() > 0 {
		seconds = int(leaseDuration / time.Second)
	}
	c.dropRange(i, now)
	return write{kind: releaseRange, index: i, before: c.view.ranges[i], name: c.rangeAt(i), seconds: seconds}
}

// planAcquisition returns the write by which this process becomes the holder of a range in this term.
func (c *core) planAcquisition(i int) write {
	return write{
		kind: acquireRange, index: i, before: c.view.ranges[i], name: c.rangeAt(i), holder: c.Identity,
		seconds: int(leaseDuration / time.Second),
	}
}

// planFree returns the acquisitions of free ranges, in an order that differs between replicas, so that two rarely take
// the same one. A replica that started later has not observed yet that a holder is dead, so some replicas mark the
// remaining ranges of dead holders as released. The replica that takes the layout creates the missing Leases.
func (c *core) planFree(most int, now time.Time) (all []write) {
	var free []int
	order := map[int]uint64{}
	for i := range c.shown {
		if c.isFree(i) {
			hash := fnv.New64a()
			_, _ = hash.Write(strconv.AppendInt([]byte(c.Identity), int64(i), 10))
			order[i], free = hash.Sum64(), append(free, i)
		}
	}
	slices.SortFunc(free, func(a, b int) int { return cmp.Compare(order[a], order[b]) })
	for n, i := range free {
		shown := c.shown[i].lease
		// About four replicas do that at first, and more of them with each second.
		late := c.view.requested.Sub(c.shown[i].ownerless) - leaseDuration
		chosen := uint64(4) << (2 * min(max(late/time.Second, 0), 10))
		isChosen := order[i]%uint64(max(c.live, 1)) < chosen //nolint:gosec // it is positive
		switch {
		case n < most:
			all = append(all, c.planAcquisition(i))
		case shown == nil && now.Before(c.noWaitUntil), shown != nil && shown.holder != "" && isChosen:
			all = append(all, write{
				kind: freeRange, index: i, before: shown, name: c.rangeAt(i), seconds: releasedSeconds,
			})
		}
	}
	return all
}

// planRemovals returns the removals of Leases of other layouts, and of dead replicas that are not named by a range.
func (c *core) planRemovals() (all []write) {
	for _, one := range c.view.obsolete {
		all = append(all, write{kind: removeLease, before: one, name: one.name})
	}
	var dead []*lease
	for name, one := range c.view.replicas {
		if c.sightings[name].isDead {
			dead = append(dead, one)
		}
	}
	if len(dead) > 0 {
		slices.SortFunc(dead, func(a, b *lease) int { return cmp.Compare(a.name, b.name) })
		named := map[string]bool{}
		for _, one := range c.view.ranges {
			if one != nil {
				named[one.replica] = true
			}
		}
		for _, one := range dead {
			if !named[one.name] {
				all = append(all, write{kind: removeLease, before: one, name: one.name})
			}
		}
	}
	return all[:min(len(all), mostRemovals)]
}
