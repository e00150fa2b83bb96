package explorer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// judge adds what must not be on a course, beside what was found on the way; the uncut run itself has no other one to
// be compared with.
func (r *run) judge(uncut *run, s settings) {
	r.judgeAttempts(uncut)
	r.judgeOthers()
	if uncut != nil && r.complete && !r.strange {
		r.judgeLost(uncut)
		r.judgeState(uncut)
	}
	if r.cleared {
		r.judgeLeaks(s)
	}
}

// judgeState compares what it has come to.
func (r *run) judgeState(uncut *run) {
	for _, name := range union(r.finally.objects, uncut.finally.objects) {
		got, there := r.finally.objects[name]
		want, wanted := uncut.finally.objects[name]
		switch {
		case !there:
			r.violate(Different, name, "it is not there; in the uncut run, it is")
		case !wanted:
			r.violate(Different, name, "it is there; in the uncut run, it is not")
		default:
			if lines := differences("", want, got); len(lines) > 0 {
				r.violate(Different, name, strings.Join(lines, "\n"))
			}
		}
	}
	if lines := differences("", uncut.finally.outside, r.finally.outside); len(lines) > 0 {
		r.violate(OutsideDifferent, "", strings.Join(lines, "\n"))
	}
}

// judgeOthers looks for what somebody else has written.
func (r *run) judgeOthers() {
	for _, one := range r.foreign {
		end, looked := r.finally, r.complete
		if one.late {
			end, looked = r.leftover, r.cleared
		}
		if looked && end.uids[one.uid] && !end.marked[one.uid] {
			r.violate(Overwritten, one.label, "a concurrent write of another client is lost: the write was "+
				"of the whole object, and did not ask for the version that was read")
		}
	}
}

// judgeLeaks looks at what is left when all is deleted that people have created.
func (r *run) judgeLeaks(s settings) {
	for _, name := range union(r.leftover.objects, nil) {
		if _, before := r.beginning.objects[name]; !before {
			r.violate(Leaked, name, "it is left over when all is deleted that people have created")
		}
	}
	if s.stays {
		return
	}
	lines := differences("", r.beginning.outside, r.leftover.outside)
	for i, line := range lines {
		lines[i] = strings.Replace(line, " in the uncut run", " at the beginning", 1)
	}
	if len(lines) > 0 {
		r.violate(Leaked, "outside", "it is not as at the beginning when all is deleted that people have created:\n"+
			strings.Join(lines, "\n"))
	}
}

// judgeLost looks for handlers that have not come to the end that they had in the uncut run.
func (r *run) judgeLost(uncut *run) {
	seen := map[change]bool{}
	for i, want := range uncut.attempts {
		if want.object == "" || !want.isFinal() || seen[want.change] {
			continue
		}
		seen[want.change] = true
		if text := r.missing(want, uncut.attempts[i:]); text != "" {
			r.violate(Lost, want.about(), text)
		}
	}
}

// missing says how an end of the uncut run is missing here; empty if it is not. An end for a later state of the object
// is one, too, as changes come together if nobody handles them meanwhile.
func (r *run) missing(want *attempt, later []*attempt) string {
	states := map[string]bool{}
	for _, a := range later {
		if a.object == want.object {
			states[a.state] = true
		}
	}
	last, handled, existed := "", false, false
	for _, a := range r.attempts {
		if a.object != want.object || a.deletes() != want.deletes() {
			continue
		}
		existed = existed || a.reason == want.reason && a.diff == want.diff
		handled = handled || a.isFinal() && states[a.state]
		switch {
		case a.handler != want.handler || !states[a.state]:
		case a.isFinal() && (a.outcome == want.outcome || want.outcome == "failure"):
			return ""
		case a.done:
			last = fmt.Sprintf("it ended with %s at last, in the uncut run with %s: %v", a.outcome, want.outcome, a.err)
		}
	}
	switch {
	case want.deletes() && !r.held[want.object]:
		return "" // nobody could know of it
	case !want.deletes() && !r.finally.alive[want.object]:
		return "" // the deletion came before
	case last != "":
		return last
	case !want.deletes() && !existed && handled:
		return "" // the change came together with another one, for which others are called
	}
	return "it has not come to an end; in the uncut run, it ended with " + want.outcome
}

// deletes tells whether it is called for a deletion.
func (a *attempt) deletes() bool { return a.reason == string(kopf.ReasonDelete) }

// isFinal tells whether the handler is not called again.
func (a *attempt) isFinal() bool {
	return a.of == handlers.Changing && a.done &&
		(a.outcome == "success" || a.outcome == "failure" || a.outcome == "ignored")
}

func union(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
