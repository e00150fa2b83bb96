package sharding

import (
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// observe stores the answer of a list. Gates of ranges that are not held any more close at once, and those that had to
// wait may open.
func (c *core) observe(v view) {
	c.checkLapse(v.received)
	previous := c.view.requested
	c.view = v
	c.isConfirmed, c.isRenewed, c.isLayoutDone, c.isRangesDone, c.isCleaned = false, false, false, false, false
	c.observeSelf()
	c.observeLayout(previous)
	c.observeReplicas()
	for i := range c.ranges {
		c.observeRange(i)
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
	version := ""
	if c.view.layout != nil {
		version = c.view.layout.version
	}
	if c.layoutSince.IsZero() || version != c.layoutVersion {
		// The new version is younger than the last list that did not show it.
		c.layoutVersion, c.layoutSince, c.layoutFloor = version, c.view.received, previous
		c.layoutJitter = newJitter()
	}
	// A missing layout is made again: others wait for a lease duration before they act by a new one.
	if c.view.layout == nil || c.view.layout.shards == c.Count {
		return
	}
	for i := range c.ranges {
		if c.ranges[i].phase != unheld {
			c.loseRange(i, c.view.received)
		}
	}
	c.endTerm()
}

// observeReplicas stores since when the Leases of replicas have their versions, and which replicas are dead. The
// holders of ranges that do not have a Lease count as replicas.
func (c *core) observeReplicas() {
	c.live, c.isFirst = 0, true
	seen := make(map[string]sighting, len(c.view.replicas))
	for name, one := range c.view.replicas {
		s := c.sight(name, one.version, one.duration())
		seen[name] = s
		if name == c.own || s.isDead || one.leaving || one.shards != c.Count {
			continue
		}
		c.live++
		c.isFirst = c.isFirst && c.Identity < one.holder
	}
	if !c.isEnding {
		c.live++
	}
	for _, one := range c.view.ranges {
		if one == nil || one.holder == "" {
			continue
		}
		if _, known := seen[one.replica]; !known {
			seen[one.replica] = c.sight(one.replica, "", leaseDuration)
		}
	}
	c.sightings = seen
}

// sight returns what is known about a replica after a list that shows this version.
func (c *core) sight(name, version string, duration time.Duration) sighting {
	s, known := c.sightings[name]
	if !known || s.version != version {
		return sighting{version: version, since: c.view.received}
	}
	s.isDead = name != c.own && c.view.requested.Sub(s.since) >= duration
	return s
}

// observeRange compares a range with the list.
func (c *core) observeRange(i int) {
	r, shown, version := &c.ranges[i], c.view.ranges[i], ""
	if shown != nil {
		version = shown.version
	}
	if r.since.IsZero() || r.version != version {
		r.version, r.since = version, c.view.received
	}
	isOwn := shown != nil && shown.holder == c.Identity
	switch {
	case r.phase == unheld && isOwn:
		// The result of a write was not known, or another client has made this process the holder.
		c.sequence++
		r.phase, r.own, r.sequence, c.isChanged = stale, nil, c.sequence, true
	case r.phase == unheld:
	case !isOwn:
		c.loseRange(i, c.view.received)
	case r.own == nil || r.own.version == version:
	case r.permitted:
		// Another client has edited the Lease. No other process had time to open the gate since the last list of this
		// term, so the range does not have to wait after the next write.
		r.gate.Set(true)
		r.phase, r.permitted, r.own = stale, false, shown
	default:
		r.own = nil
	}
	c.observeOwner(i)
}

// observeOwner stores since when a range is without an owner.
func (c *core) observeOwner(i int) {
	r, shown := &c.ranges[i], c.view.ranges[i]
	since := time.Time{}
	switch {
	case shown == nil || shown.holder == "":
		since = r.since
	case c.sightings[shown.replica].isDead:
		since = c.sightings[shown.replica].since
	}
	r.ownerless = since
}

// isFree reports whether a range may be taken. The version of the Lease of a dead holder must be old, too: a client may
// remove the Lease of a live replica repeatedly, and each new one begins a new term, in which it writes its ranges.
func (c *core) isFree(i int) bool {
	shown := c.view.ranges[i]
	if shown == nil || shown.holder == "" {
		return true
	}
	return c.sightings[shown.replica].isDead && c.view.requested.Sub(c.ranges[i].since) >= leaseDuration
}
