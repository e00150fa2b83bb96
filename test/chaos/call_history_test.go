package chaos_test

import (
	"fmt"
	"slices"
	"time"
)

// call is one call of a handler, from its first to its last event. For a killed process, the end is its last known
// event.
type call struct {
	beginReport        report
	startedAt, endedAt time.Duration
	outcome            string // it ended; empty if it was killed
	writes             []write
}

// write is one write by a handler; the time is that of its announcement.
type write struct {
	name    string
	at      time.Duration
	outcome string // wrote, refused, or nothing
}

// callHistory is a history by calls.
type callHistory struct {
	events []event
	calls  []*call
	stalls []event
	marks  map[string]bool // what the API server has
}

func newCallHistory(events []event, marks map[string]bool) *callHistory {
	a := &callHistory{events: events, marks: marks}
	open, heard := map[string]*call{}, map[string]time.Duration{}
	for _, e := range events {
		a.addEvent(e, open)
		if e.Kind != "killed" {
			heard[e.By] = e.at
		}
		for id, c := range open {
			if e.Kind == "killed" && c.beginReport.By == e.By {
				c.endedAt = heard[e.By]
				delete(open, id)
			}
		}
	}
	for _, c := range open {
		c.endedAt = heard[c.beginReport.By]
	}
	return a
}

func (a *callHistory) addEvent(e event, open map[string]*call) {
	c := open[e.Call]
	switch {
	case e.Kind == "begin":
		c = &call{beginReport: e.report, startedAt: e.at}
		open[e.Call] = c
		a.calls = append(a.calls, c)
	case e.Kind == "stall":
		a.stalls = append(a.stalls, e)
	case c == nil:
	case e.Kind == "writing":
		c.writes = append(c.writes, write{name: e.Text, at: e.at})
	case e.Kind == "wrote" || e.Kind == "refused":
		c.writes[len(c.writes)-1].outcome = e.Kind
	case e.Kind == "end":
		c.endedAt, c.outcome = e.at, e.Text
		delete(open, e.Call)
	}
}

// stallThreshold is how long a process may be without a processor before it counts as one that was frozen: half of the
// margin that operators leave each other.
const stallThreshold = time.Second

// overlap is two calls of two operators at the same time: the second one begins before the first one ends.
type overlap struct {
	first, second *call
	verdict       string
}

// The verdicts about overlaps. A stopped process looks like one whose handler is running, and it can continue within
// the handler. So only the writes after its continuation count.
const (
	verdictConcurrent = "both ran"                           // and none of them stood still
	verdictBothWrote  = "both wrote, although one had stood" // what both began to write in that time was taken
	verdictHarmless   = "one of them had stood"              // and nothing of it was taken after that
)

// overlaps returns the overlaps of different processes among the counted calls.
func (a *callHistory) overlaps(counts func(first, second *call) bool) (all []overlap) {
	for i, second := range a.calls {
		for _, first := range a.calls[:i] {
			if first.beginReport.By == second.beginReport.By || first.endedAt <= second.startedAt ||
				!counts(first, second) {
				continue
			}
			verdict := verdictConcurrent
			switch from := second.startedAt; {
			case !a.wasStalled(first, first.startedAt) && !a.wasStalled(second, from-2*stallThreshold):
			case a.wroteAfter(first, from) && a.wroteAfter(second, from):
				verdict = verdictBothWrote
			default:
				verdict = verdictHarmless
			}
			all = append(all, overlap{first, second, verdict})
		}
	}
	return all
}

// wasStalled reports whether the process of a call stood still after the given time and before the end of the call.
func (a *callHistory) wasStalled(c *call, after time.Duration) bool {
	return slices.ContainsFunc(a.stalls, func(s event) bool {
		return s.By == c.beginReport.By && s.Lasted >= stallThreshold && s.at > after && s.at-s.Lasted < c.endedAt
	})
}

// wroteAfter reports whether the API server accepted a write that began after the given time.
func (a *callHistory) wroteAfter(c *call, after time.Duration) bool {
	return slices.ContainsFunc(c.writes, func(w write) bool { return w.at >= after && a.marks[w.name] })
}

// countLateWrites counts the writes that were taken after the operator had given them up.
func (a *callHistory) countLateWrites() (count int) {
	for _, c := range a.calls {
		for _, w := range c.writes {
			if w.outcome == "refused" && a.marks[w.name] {
				count++
			}
		}
	}
	return count
}

// silence is a period in which no operator has begun a call and no event has happened, without the time in which the
// test itself could not run.
type silence struct {
	lastEvent event
	duration  time.Duration
}

// silences returns the periods that are longer than the limit, and the length of the longest one.
func (a *callHistory) silences(limit time.Duration) (all []silence, longest time.Duration) {
	var last event
	still := time.Duration(0)
	for _, e := range a.events {
		switch {
		case e.Kind == "stall" && e.By == testIdentity:
			still += e.Lasted
		case e.Kind == "begin" || slices.Contains(disturbances, e.Kind):
			if quiet := e.at - last.at - still; last.Kind != "" {
				longest = max(longest, quiet)
				if quiet > limit {
					all = append(all, silence{last, quiet})
				}
			}
			last, still = e, 0
		}
	}
	return all, longest
}

// repeatedCalls returns calls for a change that was already handled without an event in between.
func (a *callHistory) repeatedCalls(counts func(first, second *call) bool) (all []string) {
	for i, second := range a.calls {
		for _, first := range a.calls[:i] {
			same := first.beginReport.Object == second.beginReport.Object &&
				first.beginReport.Change == second.beginReport.Change
			same = same && first.outcome == outcomeDone && counts(first, second) && !a.wasHandledByKopf(first, second)
			if same && !a.wasDisturbed(first.startedAt-5*stallThreshold, second.startedAt) {
				all = append(all, fmt.Sprintf("%s repeats %s", second.beginReport.Call, first.beginReport.Call))
			}
		}
	}
	return all
}

// wasHandledByKopf reports whether an operator of Kopf has handled the object in between: it can store an older state
// as last handled, and retries that for a long time after errors.
func (a *callHistory) wasHandledByKopf(first, second *call) bool {
	return slices.ContainsFunc(a.calls, func(c *call) bool {
		since := first.startedAt - 10*kopfReactionTime
		return isKopf(c) && c.beginReport.Object == first.beginReport.Object && c.endedAt > since &&
			c.startedAt < second.startedAt
	})
}

func (a *callHistory) wasDisturbed(from, to time.Duration) bool {
	return slices.ContainsFunc(a.events, func(e event) bool {
		happened := slices.Contains(disturbances, e.Kind) || e.Kind == "stall" && e.Lasted >= stallThreshold
		return happened && e.at >= from && e.at-e.Lasted <= to
	})
}

// excerpt returns the events around an overlap: those of both operators from some time before it, and all disturbances.
func (a *callHistory) excerpt(o overlap, before time.Duration) (lines string) {
	for _, e := range a.events {
		if e.at < o.second.startedAt-before || e.at > max(o.second.endedAt, o.first.endedAt) {
			continue
		}
		of := e.Call == o.first.beginReport.Call || e.Call == o.second.beginReport.Call
		theirs := e.By == o.first.beginReport.By || e.By == o.second.beginReport.By
		if of || theirs && e.Call == "" {
			lines += e.String() + "\n"
		}
	}
	return lines
}
