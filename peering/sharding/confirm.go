package sharding

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// confirm stores the result of a write: the Lease that the API server has answered, or an error. A write with an
// unknown result counts as failed. If a later list shows its effect, the Lease is written again.
func (c *core) confirm(w write, sent, now time.Time, result *lease, err error) {
	c.checkLapse(now)
	switch w.kind {
	case writeSelf:
		c.confirmSelf(sent, result, err)
	case writeLayout:
		if err == nil {
			c.confirmLayout(w, sent, now, result)
		}
	case acquireRange:
		if err == nil && c.inTerm {
			c.confirmAcquisition(w, now, result)
		}
	case releaseRange:
		if err == nil {
			c.moves.Left++
			c.left = append(c.left, w.index)
		}
	case removeLease:
		c.mayNotRemove = c.mayNotRemove || apierrors.IsForbidden(err)
	case freeRange:
	}
}

// confirmSelf extends the permission to write, or ends the term if another client has removed the Lease.
func (c *core) confirmSelf(sent time.Time, result *lease, err error) {
	if apierrors.IsNotFound(err) {
		c.self = nil
		c.endTerm()
	}
	if err != nil {
		return
	}
	c.self, c.isConfirmed, c.renewed, c.renewedAt = result, true, c.view.requested, sent
	if c.inTerm {
		c.extend()
	}
}

// confirmLayout stores that the layout has the number of ranges of this process, and begins a term.
func (c *core) confirmLayout(w write, sent, now time.Time, result *lease) {
	c.view.layout = result
	c.layoutVersion, c.layoutSince, c.layoutFloor, c.layoutJitter = result.version, now, sent, c.jitter()
	if c.inTerm {
		c.extend()
		return
	}
	switch {
	case w.annotations[settlingAnnotation] != "":
		// Replicas of another layout may not have noticed yet that the layout was removed.
		c.opensFrom = now.Add(leaseDuration)
	case w.before.shards != c.Count:
		c.noWaitUntil = sent.Add(leaseDuration)
	}
	// The term in which it was planned may have ended. The next one begins with another renewal.
	if c.isConfirmed {
		c.beginTerm(now)
	}
}

// confirmAcquisition stores that this process is the holder of a range. Its gate opens after the whole batch of writes.
func (c *core) confirmAcquisition(w write, now time.Time, result *lease) {
	r := c.ranges[w.index]
	if r == nil {
		r = c.addRange(w.index)
	}
	isTouch := w.before != nil && versionOf(r.own) == w.before.version
	switch {
	case isTouch: // no other process has written it: a wait goes on
	case now.Before(c.noWaitUntil), w.before.isReleased():
		r.opens = time.Time{}
	case w.before == nil:
		r.opens = now.Add(leaseDuration) // it may have been removed while its holder acts
	default:
		// The holder may not have noticed that its Lease was edited. The Lease of a dead holder is old enough.
		r.opens = c.shown[w.index].since.Add(leaseDuration)
	}
	if r.opens.Before(c.opensFrom) {
		r.opens = c.opensFrom
	}
	if !isTouch {
		c.moves.Acquired++
		c.acquired = append(c.acquired, w.index)
	}
	r.phase, r.permitted, r.own = waiting, true, result
	c.shown[w.index] = shownRange{lease: result, since: now, isOwn: true}
	c.gates[w.index].AllowWritesUntil(c.until)
}
