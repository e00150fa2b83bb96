package chaos_test

import (
	"slices"
	"strings"
	"time"
)

// reason is why an operator of Kopf acts beside another operator.
type reason struct {
	name  string
	holds func(a *account, o overlap) bool
}

// moment is how long Kopf takes to notice a change and to start waiting work.
const moment = 3 * time.Second

// takeOverWait is how long operators of ours wait for those of Kopf.
const takeOverWait = 5 * time.Second

// beat is the default time for which an operator of Kopf can be without a record after another client has removed it:
// Kopf rewrites it only when the lifetime is about to end.
const beat = 15 * time.Second

// reasons are tried in this order. docs/peering.md explains them; an overlap without a reason fails the test.
var reasons = []reason{
	{"an operator of ours was frozen, and wrote nothing afterwards", func(a *account, o overlap) bool {
		return o.verdict == harmless && slices.ContainsFunc(o.calls(), func(c *call) bool {
			return !isKopf(c) && a.stood(c, c.began)
		})
	}},
	{"Kopf was frozen or cut off, and went on", func(a *account, o overlap) bool {
		return slices.ContainsFunc(o.kopfs(), a.deaf)
	}},
	{"Kopf began as a frozen peer had removed the record of who acted", func(a *account, o overlap) bool {
		return slices.ContainsFunc(o.kopfs(), func(c *call) bool {
			return a.happened("", c.began-moment, c.began, func(e event) bool {
				return e.Kind == removed && e.By != c.about.By
			})
		})
	}},
	{"a frozen peer had removed the record of Kopf, which wrote it again later", func(a *account, o overlap) bool {
		return slices.ContainsFunc(o.kopfs(), func(c *call) bool {
			return a.happened(c.about.By, o.second.began-beat, o.second.began, func(e event) bool {
				return e.Kind == removed
			})
		})
	}},
	{"Kopf finished its queues after it had paused", func(a *account, o overlap) bool {
		return slices.ContainsFunc(o.kopfs(), a.pausing)
	}},
	{"Kopf left while its handlers still ran", func(a *account, o overlap) bool {
		return isKopf(o.first) && a.happened(o.first.about.By, 0, o.second.began, func(e event) bool {
			return e.Kind == leave
		})
	}},
	{"Kopf began while handlers of others still ran", func(a *account, o overlap) bool {
		return isKopf(o.second) && a.happened(o.first.about.By, o.second.began-moment, o.first.ended+moment, yields)
	}},
	{"a handler of Kopf still ran after the wait", func(a *account, o overlap) bool {
		return isKopf(o.first) && a.happened(o.first.about.By, o.first.began, o.second.began-takeOverWait, yields)
	}},
}

// yields reports whether an event makes an operator pause.
func yields(e event) bool {
	return e.Kind == leave || e.Kind == "log" && strings.Contains(e.Text, "Pausing operations")
}

// speaks reports whether an operator of Kopf logs a line about its peers.
func speaks(e event) bool {
	return e.Kind == "log" &&
		(strings.Contains(e.Text, "Pausing operations") || strings.Contains(e.Text, "Resuming operations"))
}

// why returns the first reason that holds.
func (a *account) why(o overlap) string {
	for _, r := range reasons {
		if r.holds(a, o) {
			return r.name
		}
	}
	return ""
}

func (o overlap) calls() []*call { return []*call{o.first, o.second} }

func (o overlap) kopfs() []*call {
	return slices.DeleteFunc(o.calls(), func(c *call) bool { return !isKopf(c) })
}

// pausing reports whether an operator of Kopf began a call after it had logged that it pauses.
func (a *account) pausing(c *call) (paused bool) {
	for _, e := range a.events {
		if e.By == c.about.By && e.Kind == "log" && e.at < c.began {
			paused = yields(e) || paused && !strings.Contains(e.Text, "Resuming operations")
		}
	}
	return paused
}

// deaf reports whether a call began or continued while its operator could not see its peers: until it logs a line about
// them after it was frozen or cut off. It may reconnect slowly, because its delay grows with each error.
func (a *account) deaf(c *call) bool {
	const never = time.Duration(-1)
	since, back := never, never
	for _, e := range a.events {
		switch {
		case e.By != c.about.By:
		case slices.Contains([]string{freeze, hold, cut}, e.Kind):
			if back = never; since == never {
				since = e.at
			}
		case e.Kind == "thawed" || e.Kind == "healed":
			back = e.at
		case since != never && back != never && (speaks(e) || e.at > back+10*moment):
			if since <= c.ended && e.at+moment >= c.began {
				return true
			}
			since = never
		}
	}
	return since != never && since <= c.ended
}

// happened reports whether such an event occurred in that time, for this operator or for any.
func (a *account) happened(by string, from, to time.Duration, such func(event) bool) bool {
	return slices.ContainsFunc(a.events, func(e event) bool {
		return (by == "" || e.By == by) && e.at >= from && e.at <= to && such(e)
	})
}
