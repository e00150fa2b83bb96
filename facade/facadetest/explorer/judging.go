package explorer

import (
	"fmt"
	"strings"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// judgeAll adds the violations that only the complete run shows. The argument uncut is nil for the uncut run itself.
func (r *run) judgeAll(uncut *run, s settings) {
	r.judgeAttempts(uncut)
	r.judgeOverwrites()
	// A run that was aborted, or whose objects another client has changed, cannot be compared with the uncut run.
	if uncut != nil && r.complete && !r.hasForeignChanges {
		r.judgeLost(uncut)
		r.judgeState(uncut)
	}
	if r.cleared {
		r.judgeLeaks(s)
	}
}

// judgeState compares the final objects and outside systems with those of the uncut run.
func (r *run) judgeState(uncut *run) {
	for _, name := range unionKeys(r.finalState.objects, uncut.finalState.objects) {
		got, there := r.finalState.objects[name]
		want, wanted := uncut.finalState.objects[name]
		switch {
		case !there:
			r.addViolation(Different, name, "it is not there; in the uncut run, it is")
		case !wanted:
			r.addViolation(Different, name, "it is there; in the uncut run, it is not")
		default:
			if lines := jsonDifferences("", want, got); len(lines) > 0 {
				r.addViolation(Different, name, strings.Join(lines, "\n"))
			}
		}
	}
	if lines := jsonDifferences("", uncut.finalState.outside, r.finalState.outside); len(lines) > 0 {
		r.addViolation(OutsideDifferent, "", strings.Join(lines, "\n"))
	}
}

// judgeOverwrites finds changes of other clients that the operator has overwritten.
func (r *run) judgeOverwrites() {
	for _, one := range r.foreignEdits {
		end, looked := r.finalState, r.complete
		// A change after the end of the play is checked in the state after the cleanup.
		if one.isAfterPlay {
			end, looked = r.leftoverState, r.cleared
		}
		// An object that is gone cannot show a lost change.
		if looked && end.existingObjects[one.label] && !end.markedObjects[one.label] {
			r.addViolation(Overwritten, one.label, "a concurrent write of another client is lost: the write was "+
				"of the whole object, and did not ask for the version that was read")
		}
	}
}

// judgeLeaks finds objects and outside effects that remain after all objects of the play were deleted.
func (r *run) judgeLeaks(s settings) {
	for _, name := range unionKeys(r.leftoverState.objects, nil) {
		if _, before := r.initialState.objects[name]; !before {
			r.addViolation(Leaked, name, "it is left over when all is deleted that people have created")
		}
	}
	if s.outsideStays {
		return
	}
	// The texts of differences are about the uncut run; here, the beginning is the reference.
	lines := jsonDifferences("", r.initialState.outside, r.leftoverState.outside)
	for i, line := range lines {
		lines[i] = strings.Replace(line, " in the uncut run", " at the beginning", 1)
	}
	if len(lines) > 0 {
		r.addViolation(Leaked, "outside",
			"it is not as at the beginning when all is deleted that people have created:\n"+
				strings.Join(lines, "\n"))
	}
}

// judgeLost finds handlers that did not end as in the uncut run.
func (r *run) judgeLost(uncut *run) {
	seen := map[change]bool{}
	for i, want := range uncut.attempts {
		if want.object == "" || !want.isFinal() || seen[want.change] {
			continue
		}
		seen[want.change] = true
		if text := r.missingResult(want, uncut.attempts[i:]); text != "" {
			r.addViolation(Lost, want.violationSubject(), text)
		}
	}
}

// missingResult returns a description of how a result of the uncut run is missing in this run, or an empty text. A
// result for a later state of the object is accepted, because several changes are handled as one if the operator was
// down in between.
func (r *run) missingResult(want *attempt, later []*attempt) string {
	// The states that the uncut run has seen from this attempt on.
	states := map[string]bool{}
	for _, a := range later {
		if a.object == want.object {
			states[a.essence] = true
		}
	}
	last, handled, existed := "", false, false
	for _, a := range r.attempts {
		if a.object != want.object || a.isForDeletion() != want.isForDeletion() {
			continue
		}
		existed = existed || a.reason == want.reason && a.diff == want.diff
		// Some handler has completed for this or a later state.
		handled = handled || a.isFinal() && states[a.essence]
		switch {
		case a.handler != want.handler || !states[a.essence]:
		case a.isFinal() && (a.outcome == want.outcome || want.outcome == "failure"):
			return ""
		case a.done:
			last = fmt.Sprintf("it ended with %s at last, in the uncut run with %s: %v", a.outcome, want.outcome, a.err)
		}
	}
	switch {
	case want.isForDeletion() && !r.objectsWithFinalizers[want.object]:
		return "" // without a finalizer, a deletion can go unnoticed
	case !want.isForDeletion() && !r.finalState.existingObjects[want.object]:
		return "" // the object was deleted before
	case last != "":
		return last
	case !want.isForDeletion() && !existed && handled:
		return "" // the change was handled together with another one, for which other handlers run
	}
	return "it has not come to an end; in the uncut run, it ended with " + want.outcome
}

// isForDeletion reports whether the attempt is for a deletion.
func (a *attempt) isForDeletion() bool { return a.reason == string(kopf.ReasonDelete) }

// isFinal reports whether the handler is not called again for the change.
func (a *attempt) isFinal() bool {
	return a.family == handlers.Changing && a.done &&
		(a.outcome == "success" || a.outcome == "failure" || a.outcome == "ignored")
}
