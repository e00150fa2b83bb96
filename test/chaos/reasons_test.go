package chaos_test

import (
	"slices"
	"strings"
	"time"
)

// reason is why an operator of Kopf acts beside another operator.
type reason struct {
	name    string
	matches func(a *callHistory, o overlap) bool
}

// kopfReactionTime is how long Kopf takes to notice a change and to start waiting work.
const kopfReactionTime = 3 * time.Second

// takeOverWait is how long operators of ours wait for those of Kopf.
const takeOverWait = 5 * time.Second

// kopfRenewalPeriod is the default time for which an operator of Kopf can be without a record after another client has
// removed it: Kopf rewrites it only when the lifetime is about to end.
const kopfRenewalPeriod = 15 * time.Second

// reasons are tried in this order. docs/peering.md explains them; an overlap without a reason fails the test.
var reasons = []reason{
	{"an operator of ours was frozen, and wrote nothing afterwards", func(a *callHistory, o overlap) bool {
		return o.verdict == verdictHarmless && slices.ContainsFunc(o.calls(), func(c *call) bool {
			return !isKopf(c) && a.wasStalled(c, c.startedAt)
		})
	}},
	{"Kopf was frozen or cut off, and went on", func(a *callHistory, o overlap) bool {
		return slices.ContainsFunc(o.kopfCalls(), a.couldNotSeePeers)
	}},
	{"Kopf began as a frozen peer had removed the record of who acted", func(a *callHistory, o overlap) bool {
		return slices.ContainsFunc(o.kopfCalls(), func(c *call) bool {
			return a.hasEvent("", c.startedAt-kopfReactionTime, c.startedAt, func(e event) bool {
				return e.Kind == recordRemoved && e.By != c.beginReport.By
			})
		})
	}},
	{"a frozen peer had removed the record of Kopf, which wrote it again later", func(a *callHistory, o overlap) bool {
		return slices.ContainsFunc(o.kopfCalls(), func(c *call) bool {
			return a.hasEvent(c.beginReport.By, o.second.startedAt-kopfRenewalPeriod, o.second.startedAt,
				func(e event) bool {
					return e.Kind == recordRemoved
				})
		})
	}},
	{"Kopf finished its queues after it had paused", func(a *callHistory, o overlap) bool {
		return slices.ContainsFunc(o.kopfCalls(), a.beganWhilePaused)
	}},
	{"Kopf left while its handlers still ran", func(a *callHistory, o overlap) bool {
		return isKopf(o.first) && a.hasEvent(o.first.beginReport.By, 0, o.second.startedAt, func(e event) bool {
			return e.Kind == stepLeave
		})
	}},
	{"Kopf began while handlers of others still ran", func(a *callHistory, o overlap) bool {
		return isKopf(o.second) && a.hasEvent(o.first.beginReport.By, o.second.startedAt-kopfReactionTime,
			o.first.endedAt+kopfReactionTime, isPauseEvent)
	}},
	{"a handler of Kopf still ran after the wait", func(a *callHistory, o overlap) bool {
		return isKopf(o.first) && a.hasEvent(o.first.beginReport.By, o.first.startedAt, o.second.startedAt-takeOverWait,
			isPauseEvent)
	}},
}

// isPauseEvent reports whether an event makes an operator pause.
func isPauseEvent(e event) bool {
	return e.Kind == stepLeave || e.Kind == "log" && strings.Contains(e.Text, "Pausing operations")
}

// isPeerLogEvent reports whether an operator of Kopf logs a line about its peers.
func isPeerLogEvent(e event) bool {
	return e.Kind == "log" &&
		(strings.Contains(e.Text, "Pausing operations") || strings.Contains(e.Text, "Resuming operations"))
}

// findReason returns the first reason that holds.
func (a *callHistory) findReason(o overlap) string {
	for _, r := range reasons {
		if r.matches(a, o) {
			return r.name
		}
	}
	return ""
}

func (o overlap) calls() []*call { return []*call{o.first, o.second} }

func (o overlap) kopfCalls() []*call {
	return slices.DeleteFunc(o.calls(), func(c *call) bool { return !isKopf(c) })
}

// beganWhilePaused reports whether an operator of Kopf began a call after it had logged that it pauses.
func (a *callHistory) beganWhilePaused(c *call) (paused bool) {
	for _, e := range a.events {
		if e.By == c.beginReport.By && e.Kind == "log" && e.at < c.startedAt {
			paused = isPauseEvent(e) || paused && !strings.Contains(e.Text, "Resuming operations")
		}
	}
	return paused
}

// couldNotSeePeers reports whether a call began or continued while its operator could not see its peers: until it logs
// a line about them after it was frozen or cut off. It may reconnect slowly, because its delay grows with each error.
func (a *callHistory) couldNotSeePeers(c *call) bool {
	const never = time.Duration(-1)
	since, back := never, never
	for _, e := range a.events {
		switch {
		case e.By != c.beginReport.By:
		case slices.Contains([]string{stepFreeze, stepHold, stepCut}, e.Kind):
			if back = never; since == never {
				since = e.at
			}
		case e.Kind == "thawed" || e.Kind == "healed":
			back = e.at
		case since != never && back != never && (isPeerLogEvent(e) || e.at > back+10*kopfReactionTime):
			if since <= c.endedAt && e.at+kopfReactionTime >= c.startedAt {
				return true
			}
			since = never
		}
	}
	return since != never && since <= c.endedAt
}

// hasEvent reports whether such an event occurred in that time, for this operator or for any.
func (a *callHistory) hasEvent(by string, from, to time.Duration, such func(event) bool) bool {
	return slices.ContainsFunc(a.events, func(e event) bool {
		return (by == "" || e.By == by) && e.at >= from && e.at <= to && such(e)
	})
}
