package chaos_test

import (
	"fmt"
	"slices"
	"time"
)

// call is one call of a handler, from its first to its last event. For a killed process, the end is its last known
// event.
type call struct {
	about        report
	began, ended time.Duration
	how          string // it ended; empty if it was killed
	writes       []write
}

// write is one write by a handler; the time is that of its announcement.
type write struct {
	name string
	at   time.Duration
	told string // wrote, refused, or nothing
}

// account is a history by calls.
type account struct {
	events []event
	calls  []*call
	stalls []event
	marks  map[string]bool // what the API server has
}

func newAccount(events []event, marks map[string]bool) *account {
	a := &account{events: events, marks: marks}
	open, heard := map[string]*call{}, map[string]time.Duration{}
	for _, e := range events {
		a.take(e, open)
		if e.Kind != "killed" {
			heard[e.By] = e.at
		}
		for id, c := range open {
			if e.Kind == "killed" && c.about.By == e.By {
				c.ended = heard[e.By]
				delete(open, id)
			}
		}
	}
	for _, c := range open {
		c.ended = heard[c.about.By]
	}
	return a
}

func (a *account) take(e event, open map[string]*call) {
	c := open[e.Call]
	switch {
	case e.Kind == "begin":
		c = &call{about: e.report, began: e.at}
		open[e.Call] = c
		a.calls = append(a.calls, c)
	case e.Kind == "stall":
		a.stalls = append(a.stalls, e)
	case c == nil:
	case e.Kind == "writing":
		c.writes = append(c.writes, write{name: e.Text, at: e.at})
	case e.Kind == "wrote" || e.Kind == "refused":
		c.writes[len(c.writes)-1].told = e.Kind
	case e.Kind == "end":
		c.ended, c.how = e.at, e.Text
		delete(open, e.Call)
	}
}

// unfair is how long a process may be without a processor before it counts as one that was frozen: half of the margin
// that operators leave each other.
const unfair = time.Second

// overlap is two calls of two operators at the same time: the second one begins before the first one ends.
type overlap struct {
	first, second *call
	verdict       string
}

// The verdicts about overlaps. A stopped process looks like one whose handler is running, and it can continue within
// the handler. So only the writes after its continuation count.
const (
	atOnce    = "both ran"                           // and none of them stood still
	bothWrote = "both wrote, although one had stood" // what both began to write in that time was taken
	harmless  = "one of them had stood"              // and nothing of it was taken after that
)

// overlaps returns the overlaps of different processes among the counted calls.
func (a *account) overlaps(counts func(first, second *call) bool) (all []overlap) {
	for i, second := range a.calls {
		for _, first := range a.calls[:i] {
			if first.about.By == second.about.By || first.ended <= second.began || !counts(first, second) {
				continue
			}
			verdict := atOnce
			switch from := second.began; {
			case !a.stood(first, first.began) && !a.stood(second, from-2*unfair):
			case a.wroteAfter(first, from) && a.wroteAfter(second, from):
				verdict = bothWrote
			default:
				verdict = harmless
			}
			all = append(all, overlap{first, second, verdict})
		}
	}
	return all
}

// stood reports whether the process of a call stood still after the given time and before the end of the call.
func (a *account) stood(c *call, after time.Duration) bool {
	return slices.ContainsFunc(a.stalls, func(s event) bool {
		return s.By == c.about.By && s.Lasted >= unfair && s.at > after && s.at-s.Lasted < c.ended
	})
}

// wroteAfter reports whether the API server accepted a write that began after the given time.
func (a *account) wroteAfter(c *call, after time.Duration) bool {
	return slices.ContainsFunc(c.writes, func(w write) bool { return w.at >= after && a.marks[w.name] })
}

// late counts the writes that were taken after the operator had given them up.
func (a *account) late() (count int) {
	for _, c := range a.calls {
		for _, w := range c.writes {
			if w.told == "refused" && a.marks[w.name] {
				count++
			}
		}
	}
	return count
}

// silence is a period in which no operator has begun a call and no event has happened, without the time in which the
// test itself could not run.
type silence struct {
	after  event
	lasted time.Duration
}

// silences returns the periods that are longer than the limit, and the length of the longest one.
func (a *account) silences(limit time.Duration) (all []silence, longest time.Duration) {
	var last event
	still := time.Duration(0)
	for _, e := range a.events {
		switch {
		case e.Kind == "stall" && e.By == test:
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

// repeats returns calls for a change that was already handled without an event in between.
func (a *account) repeats(counts func(first, second *call) bool) (all []string) {
	for i, second := range a.calls {
		for _, first := range a.calls[:i] {
			same := first.about.Object == second.about.Object && first.about.Change == second.about.Change
			same = same && first.how == done && counts(first, second) && !a.undone(first, second)
			if same && !a.disturbed(first.began-5*unfair, second.began) {
				all = append(all, fmt.Sprintf("%s repeats %s", second.about.Call, first.about.Call))
			}
		}
	}
	return all
}

// undone reports whether an operator of Kopf has handled the object in between: it can store an older state as last
// handled, and retries that for a long time after errors.
func (a *account) undone(first, second *call) bool {
	return slices.ContainsFunc(a.calls, func(c *call) bool {
		since := first.began - 10*moment
		return isKopf(c) && c.about.Object == first.about.Object && c.ended > since && c.began < second.began
	})
}

func (a *account) disturbed(from, to time.Duration) bool {
	return slices.ContainsFunc(a.events, func(e event) bool {
		happened := slices.Contains(disturbances, e.Kind) || e.Kind == "stall" && e.Lasted >= unfair
		return happened && e.at >= from && e.at-e.Lasted <= to
	})
}

// excerpt returns the events around an overlap: those of both operators from some time before it, and all disturbances.
func (a *account) excerpt(o overlap, before time.Duration) (lines string) {
	for _, e := range a.events {
		if e.at < o.second.began-before || e.at > max(o.second.ended, o.first.ended) {
			continue
		}
		of := e.Call == o.first.about.Call || e.Call == o.second.about.Call
		theirs := e.By == o.first.about.By || e.By == o.second.about.By
		if of || theirs && e.Call == "" {
			lines += e.String() + "\n"
		}
	}
	return lines
}
