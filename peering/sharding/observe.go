package sharding

import (
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// observe stores the answer of a list. Gates of ranges that are not held any more close at once, and those that had to
// wait may open.
func (c *core) observe(v view) {
	c.checkLapse(v.received)
	previous := c.view.requested
	c.view, c.noWaitUntil = v, time.Time{}
	c.isConfirmed, c.isRenewed, c.isLayoutDone, c.isRangesDone, c.isCleaned = false, false, false, false, false
	c.observeSelf()
	c.observeLayout(previous)
	isChanged := false
	for i := range c.ranges {
		isChanged = c.observeRange(i) || isChanged
	}
	// Most lists show the same ranges and replicas as before.
	if c.observeReplicas(isChanged) {
		c.isAnyOwnerless = false
		for i := range c.ranges {
			c.observeOwner(i)
		}
	}
	c.settle(v.received)
}

// observeSelf ends the term if another client has removed the own Lease: then others may take this process for dead.
// They cannot if the Lease was only edited, because that changes its version.
func (c *core) observeSelf() {
	shown := c.view.replicas[c.own]
	if c.self != nil && (shown == nil || shown.uid != c.self.uid) {
		c.endTerm()
		logging.Warn(c.log, "Pausing operations in all ranges for a moment, as the own Lease was removed")
	}
	c.self = shown
}

// observeLayout stores since when the layout has its version. If it is that of others, this process holds nothing.
func (c *core) observeLayout(previous time.Time) {
	if !c.view.isLayoutKnown {
		return
	}
	version := versionOf(c.view.layout)
	if c.layoutSince.IsZero() || version != c.layoutVersion {
		// The new version is younger than the last list that did not show it.
		c.layoutVersion, c.layoutSince, c.layoutFloor = version, c.view.received, previous
		c.layoutJitter = c.jitter()
	}
	// A missing layout is made again: others wait for a lease duration before they act by a new one.
	if c.view.layout == nil || c.view.layout.shards == c.Count {
		return
	}
	for i, r := range c.ranges {
		if r != nil {
			c.loseRange(i, c.view.received)
		}
	}
	c.endTerm()
}

// observeReplicas stores since when the Leases of replicas have their versions, and which replicas are dead. It returns
// true if owners of ranges may have changed.
func (c *core) observeReplicas(isChanged bool) bool {
	c.live, c.isFirst, c.nextDeath = 0, true, time.Time{}
	c.isPaused = c.isPausedNow()
	paused := 0
	seen := make(map[string]sighting, len(c.view.replicas))
	for name, one := range c.view.replicas {
		s, isKnown := c.sight(name, one.version, one.duration())
		isChanged = isChanged || !isKnown || s.isDead
		seen[name] = s
		if name == c.own || s.isDead || one.leaving || one.shards != c.Count {
			continue
		}
		c.isFirst = c.isFirst && c.Identity < one.holder
		// A replica that may be dead does not get a share: no other replica could take its share before it is dead.
		switch isSilent := c.view.requested.Sub(s.since) >= silence; {
		case !isSilent && one.paused:
			paused++
		case !isSilent:
			c.live++
		default:
			if dies := s.since.Add(one.duration()); c.nextDeath.IsZero() || dies.Before(c.nextDeath) {
				c.nextDeath = dies
			}
		}
	}
	c.countSelf(paused)
	isChanged = isChanged || len(seen) != len(c.sightings)
	if !isChanged {
		c.sightings = seen
		return false
	}
	// The holders of ranges that do not have a Lease count as replicas.
	for _, one := range c.view.ranges {
		if one == nil || one.holder == "" {
			continue
		}
		if _, isKnown := seen[one.replica]; !isKnown {
			seen[one.replica], _ = c.sight(one.replica, "", leaseDuration)
		}
	}
	c.sightings = seen
	return true
}

// countSelf adds this process to the replicas that share the ranges. While the peers have paused some of the replicas,
// the others share all ranges. If all of them are paused, they keep their ranges: replicas notice the beginning and the
// end of a pause at different times, and their Leases show it after their next renewal.
func (c *core) countSelf(paused int) {
	switch isOutdone := c.isPaused && c.live > 0; {
	case !isOutdone:
		c.outdone = time.Time{}
	case c.outdone.IsZero():
		c.outdone = c.view.received
	}
	c.yields = !c.outdone.IsZero() && c.view.requested.Sub(c.outdone) >= silence
	switch {
	case c.isEnding, c.yields:
	case c.isPaused:
		c.live += paused + 1
	default:
		c.live++
	}
}

// isPausedNow reports whether the peers have paused the operator in this process.
func (c *core) isPausedNow() bool { return c.Paused != nil && c.Paused() }

// sight returns the state of a replica after a list that shows this version, and whether the list before had
// its Lease, too.
func (c *core) sight(name, version string, duration time.Duration) (s sighting, isKnown bool) {
	s, isKnown = c.sightings[name]
	if !isKnown || s.version != version {
		return sighting{version: version, since: c.view.received}, isKnown && s.version != "" && version != ""
	}
	s.isDead = name != c.own && c.view.requested.Sub(s.since) >= duration
	return s, version != ""
}

// observeRange compares a range with the list. It returns true if the Lease has another version.
func (c *core) observeRange(i int) (isChanged bool) {
	r, shown, now := c.ranges[i], &c.shown[i], c.view.ranges[i]
	if isChanged = shown.since.IsZero() || shown.lease != now && versionOf(shown.lease) != versionOf(now); isChanged {
		shown.since, shown.isOwn = c.view.received, now != nil && now.holder == c.Identity
	}
	shown.lease = now
	switch {
	case r == nil && shown.isOwn:
		// The result of a write was not known, or another client has made this process the holder.
		c.addRange(i)
	case r == nil:
	case !shown.isOwn:
		c.loseRange(i, c.view.received)
	case versionOf(r.own) == now.version:
	case r.permitted:
		// Another client has edited the Lease. No other process had time to open the gate since the last list of this
		// term, so the range does not have to wait after the next write.
		c.gates[i].Set(true)
		r.phase, r.permitted, r.own = stale, false, now
	default:
		r.own = nil
	}
	return isChanged
}

// addRange stores that this process holds a range, which must be written before its gate opens.
func (c *core) addRange(i int) *heldRange {
	c.sequence++
	c.isChanged = true
	c.ranges[i] = &heldRange{sequence: c.sequence}
	return c.ranges[i]
}

// observeOwner stores since when a range is without an owner.
func (c *core) observeOwner(i int) {
	shown := &c.shown[i]
	switch {
	case shown.lease == nil || shown.lease.holder == "":
		shown.ownerless = shown.since
	case c.sightings[shown.lease.replica].isDead:
		shown.ownerless = c.sightings[shown.lease.replica].since
	default:
		shown.ownerless = time.Time{}
	}
	c.isAnyOwnerless = c.isAnyOwnerless || !shown.ownerless.IsZero()
}

// isFree reports whether a range may be taken. The version of the Lease of a dead holder must be old, too: a client may
// remove the Lease of a live replica repeatedly, and each new one begins a new term, in which it writes its ranges. A
// range in which an attempt of this process is still running is left to others: its gate could not open.
func (c *core) isFree(i int) bool {
	shown := c.shown[i]
	if shown.ownerless.IsZero() || c.ranges[i] != nil || c.gates[i].Busy() > 0 {
		return false
	}
	return shown.lease == nil || shown.lease.holder == "" || c.view.requested.Sub(shown.since) >= leaseDuration
}
