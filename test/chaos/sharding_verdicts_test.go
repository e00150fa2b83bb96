package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sharedHistory is a history of replicas that share the objects.
type sharedHistory struct {
	*callHistory

	startedAt time.Time
	ranges    map[string]int // the range of each object
	writes    []auditedWrite // in their order
}

// judge fails the test if a rule was broken, and prints the figures.
func (r *sharedRun) judge(writes []auditedWrite) {
	r.t.Helper()
	marks := map[string]bool{}
	for _, w := range writes {
		marks[w.mark] = true
	}
	h := &sharedHistory{
		callHistory: newCallHistory(r.ledger.history(), marks), startedAt: r.ledger.startedAt, ranges: r.ranges,
		writes: writes,
	}
	r.save()
	foreign, explained := h.foreignWrites()
	for _, w := range foreign {
		r.t.Errorf("a write by a process that does not hold the range: %s", h.describe(w))
	}
	for _, w := range explained {
		r.t.Logf("a write that was delayed: %s", h.describe(w))
	}
	verdicts := map[string]int{}
	for _, o := range h.objectOverlaps() {
		if verdicts[o.verdict]++; o.verdict != verdictHarmless {
			r.t.Errorf("%s: %s and %s\n%s", o.verdict, o.first.beginReport.Call, o.second.beginReport.Call,
				h.excerpt(o, 2*sharedLease))
		}
	}
	repeats, unexplained := h.objectRepeats(explained)
	for _, text := range unexplained {
		r.t.Errorf("repeated without a disturbance of the process: %s", text)
	}
	gaps := h.gaps()
	longest, raw := time.Duration(0), time.Duration(0)
	for shard, g := range gaps {
		longest, raw = max(longest, g.duration), max(raw, g.whole)
		// A begin follows after a list, and needs a processor.
		if g.duration > sharedLease+10*time.Second {
			r.t.Errorf("no replica began a call for %s in range %d, after the edit %s", g.duration, shard, g.edit)
		}
	}
	ownerless := h.ownerless()
	if ownerless > sharedLease+5*time.Second {
		r.t.Errorf("a range was without an owner for %s", ownerless)
	}
	for _, e := range h.events {
		if e.Kind == "log" && (strings.Contains(e.Text, "panicked") || strings.Contains(e.Text, "DATA RACE")) {
			r.t.Error(e)
		}
	}
	moves := 0
	for _, w := range writes {
		if w.shard >= 0 && w.holder != "" {
			moves++
		}
	}
	r.t.Logf("%d objects, %d edits, %d calls, %d writes to objects and ranges; %s; ranges taken %d; overlaps %v; "+
		"repeated after a disturbance %d; writes of former holders that were delayed %d; the longest time without a "+
		"begin after an edit %s, since the last disturbance %s; from Leases %s", r.count, r.edits, len(h.calls),
		len(writes), h.happened(), moves, verdicts, repeats, len(explained), raw.Round(time.Millisecond),
		longest.Round(time.Millisecond), ownerless.Round(time.Millisecond))
}

// happened counts the disturbances.
func (h *sharedHistory) happened() string {
	counts := map[string]int{}
	for _, e := range h.events {
		if slices.Contains(disturbances, e.Kind) || e.Kind == stepJoin || e.Kind == stepRestart {
			counts[e.Kind]++
		}
	}
	return formatCounts(counts)
}

func (h *sharedHistory) describe(w auditedWrite) string {
	return fmt.Sprintf("%.3fs (received %.3fs) %s to %s in range %d, version %d", w.at.Sub(h.startedAt).Seconds(),
		w.received.Sub(h.startedAt).Seconds(), w.by, w.object, h.ranges[w.object], w.version)
}

// foreignWrites returns the writes to objects by processes that did not hold the range: etcd orders both. They are
// explained if the process was frozen or cut off, so that a request that was permitted arrived late.
func (h *sharedHistory) foreignWrites() (foreign, explained []auditedWrite) {
	holders := map[int]string{}
	for _, w := range h.writes {
		switch {
		case w.shard >= 0:
			holders[w.shard] = w.holder
		case holders[h.ranges[w.object]] == w.by:
		case h.wasHeld(w.by, w.received.Sub(h.startedAt)):
			explained = append(explained, w)
		default:
			foreign = append(foreign, w)
		}
	}
	return foreign, explained
}

// wasHeld reports whether the process was frozen or without a connection shortly before.
func (h *sharedHistory) wasHeld(by string, at time.Duration) bool {
	return slices.ContainsFunc(h.events, func(e event) bool {
		isOver := e.Kind == "thawed" || e.Kind == "healed" || e.Kind == "stall" && e.Lasted > stallThreshold
		return isOver && e.By == by && e.at > at-2*time.Second && e.at < at+2*time.Second
	})
}

// objectOverlaps returns the overlaps of calls for the same object.
func (h *sharedHistory) objectOverlaps() (all []overlap) {
	for _, calls := range h.byObject() {
		one := *h.callHistory
		one.calls = calls
		all = append(all, one.overlaps(func(*call, *call) bool { return true })...)
	}
	return all
}

func (h *sharedHistory) byObject() map[string][]*call {
	objects := map[string][]*call{}
	for _, c := range h.calls {
		objects[c.beginReport.Object] = append(objects[c.beginReport.Object], c)
	}
	return objects
}

// objectRepeats counts the calls for an edit that was handled before. They are explained by a disturbance of the
// process that handled it before, so that the outcome may not be saved; by a restart of the API server; or by a delayed
// write to the object.
func (h *sharedHistory) objectRepeats(delayed []auditedWrite) (count int, unexplained []string) {
	for object, calls := range h.byObject() {
		for i, second := range calls {
			for _, first := range calls[:i] {
				if first.outcome != outcomeDone || first.beginReport.Change != second.beginReport.Change {
					continue
				}
				count++
				isDelayed := slices.ContainsFunc(delayed, func(w auditedWrite) bool {
					return w.object == object && w.at.Sub(h.startedAt) < second.endedAt
				})
				if !isDelayed && !h.wasInterrupted(first, second) {
					unexplained = append(unexplained, fmt.Sprintf("%s (until %s) by %s (from %s) for %s, change %d",
						first.beginReport.Call, first.endedAt, second.beginReport.Call, second.startedAt, object,
						first.beginReport.Change))
				}
			}
		}
	}
	return count, unexplained
}

// wasInterrupted reports whether the process of a call was disturbed at its end, or before its outcome was saved.
func (h *sharedHistory) wasInterrupted(first, second *call) bool {
	disturbed := map[string]bool{}
	for _, e := range h.events {
		if e.By != first.beginReport.By && e.By != serverIdentity {
			continue
		}
		switch e.Kind {
		case stepKill, stepFreeze, stepHold, stepCut, stepRestart:
			disturbed[e.By] = true
		case "thawed", "healed":
			disturbed[e.By] = e.at >= first.startedAt-stallThreshold && disturbed[e.By]
		}
		isStall := e.Kind == "stall" && e.Lasted > stallThreshold && e.at > first.startedAt &&
			e.at-e.Lasted < second.startedAt
		if e.at <= second.startedAt && e.at >= first.startedAt-stallThreshold && disturbed[e.By] || isStall {
			return true
		}
	}
	return false
}

// gap is a time in which an edit in a range was waiting, and no replica began a call there.
type gap struct {
	edit            event
	whole, duration time.Duration // duration counts from the last disturbance that began meanwhile
}

// gaps returns the longest gap of each range.
func (h *sharedHistory) gaps() map[int]gap {
	waiting, longest := map[int]gap{}, map[int]gap{}
	from, isDown := map[int]time.Duration{}, false
	for _, e := range h.events {
		shard, isKnown := h.ranges[e.Object]
		switch {
		case e.By == serverIdentity:
			if isDown = e.Kind == stepRestart; isDown {
				continue
			}
			for shard := range waiting {
				from[shard] = e.at
			}
		case e.Kind == "edit":
			if _, isWaiting := waiting[shard]; !isWaiting {
				waiting[shard], from[shard] = gap{edit: e}, e.at
			}
		case e.Kind == "begin" && isKnown:
			g, isWaiting := waiting[shard]
			if !isWaiting {
				continue
			}
			if delete(waiting, shard); isDown {
				continue // it comes up
			}
			g.whole, g.duration = e.at-g.edit.at, e.at-from[shard]
			if before := longest[shard]; g.duration > before.duration {
				g.whole = max(g.whole, before.whole)
				longest[shard] = g
			}
		case slices.Contains([]string{stepKill, stepFreeze, stepHold, stepCut}, e.Kind):
			for shard := range waiting {
				from[shard] = e.at
			}
		}
	}
	return longest
}

// ownerless returns the longest time between a release of a range, or the kill of its holder, and its next
// acquisition. It counts from the last disturbance that began meanwhile, because who would have taken the range may be
// disturbed, and from the end of a restart of the API server.
func (h *sharedHistory) ownerless() (longest time.Duration) {
	killed, resets := map[string]time.Duration{}, []time.Duration{}
	for _, e := range h.events {
		switch {
		case e.Kind == "killed":
			killed[e.By] = e.at
		case slices.Contains([]string{stepKill, stepFreeze, stepHold, stepCut}, e.Kind),
			e.Kind == "healed" && e.By == serverIdentity:
			resets = append(resets, e.at)
		}
	}
	holders, free := map[int]string{}, map[int]time.Duration{}
	for _, w := range h.writes {
		if w.shard < 0 {
			continue
		}
		at := w.at.Sub(h.startedAt)
		if end, isKilled := killed[holders[w.shard]]; isKilled {
			free[w.shard] = end
		}
		from, isFree := free[w.shard]
		switch {
		case w.holder == "" && !isFree:
			free[w.shard] = at
		case w.holder != "" && isFree:
			for _, reset := range resets {
				if reset < at {
					from = max(from, reset)
				}
			}
			longest = max(longest, at-from)
			delete(free, w.shard)
		}
		holders[w.shard] = w.holder
	}
	return longest
}
