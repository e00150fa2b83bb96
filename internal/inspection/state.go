package inspection

import (
	"cmp"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// ObjectCondition is the state of an object in one word.
type ObjectCondition string

// The states, in descending order of severity. If the handlers of an object are in different states, the object has the
// first of these.
const (
	// Throttled means that an error of the framework delays the object.
	Throttled ObjectCondition = "throttled"
	// Blocked means that the object is not handled until it changes.
	Blocked ObjectCondition = "blocked"
	// Failed means that a handler has failed permanently.
	Failed ObjectCondition = "failed"
	// Retrying means that a handler has failed and will be called again.
	Retrying ObjectCondition = "retrying"
	// Running means that a handler is being called, or is called next.
	Running ObjectCondition = "running"
	// Waiting means that a handler waits for its time, its sub-handlers, a child, or other handlers.
	Waiting ObjectCondition = "waiting"
	// Paused means that an annotation pauses the object.
	Paused ObjectCondition = "paused"
	// Handled means that handlers were called, and no work is left.
	Handled ObjectCondition = "handled"
	// Unchanged means that no work is needed: no essential change, or no handler for it.
	Unchanged ObjectCondition = "unchanged"
	// Unknown means that the object existed before this process, which has not called a change handler for it yet. The
	// result of its last change is not known.
	Unknown ObjectCondition = "unknown"
	// Seen means that the watch has reported the object, but no decision was made yet.
	Seen ObjectCondition = "seen"
	// Gone means that the object was deleted.
	Gone ObjectCondition = "gone"
)

// AllStates returns all states, in this order.
func AllStates() []ObjectCondition {
	return []ObjectCondition{Throttled, Blocked, Failed, Retrying, Running, Waiting, Paused, Handled, Unchanged,
		Unknown, Seen, Gone}
}

// problemStateCount is the number of states that need the attention of a user. They come first in the order.
const problemStateCount = 4

// IsProblem reports whether the object needs the attention of a user.
func (s ObjectCondition) IsProblem() bool { return s.severityRank() < problemStateCount }

// severityRank returns the position of a problem among the states. All other states have the same severity.
func (s ObjectCondition) severityRank() int {
	if at := slices.Index(AllStates(), s); at >= 0 {
		return min(at, problemStateCount)
	}
	return problemStateCount
}

// stateTracker computes the state of an object from its entries, which must be added in the order of time.
type stateTracker struct {
	gone bool
	// existedBefore is true if the object existed before this process, and its kind has change handlers.
	existedBefore    bool
	handlers         []*handler
	hasCalledHandler bool           // a change handler was called
	hold             *journal.Entry // nil if the object was handled after it
	decision         *journal.Entry // the last entry about a change that concerned a handler
	routineCall      *journal.Entry // the last call for a raw event or a child, or in the background
	quietEvaluation  *journal.Entry // the last look that concerned no handler
	lastEntry        *journal.Entry
}

// handler is the state of one handler. The empty state has no pending work.
type handler struct {
	id, purpose string
	state       ObjectCondition
	until       *time.Time
	attempt     *journal.AttemptEntry
	// entry is the entry that caused the state, and since is the beginning of the state.
	entry *journal.Entry
	since time.Time
}

// changeState sets the state. If the state stays the same, an entry of an attempt is kept as its cause: a later look at
// the same handler says less, as it has no error text.
func (h *handler) changeState(state ObjectCondition, by *journal.Entry) {
	if h.state != state {
		h.since = firstTime(by)
	}
	if h.state != state || h.entry.Attempt == nil || by.Attempt != nil {
		h.entry = by
	}
	h.state = state
}

// firstTime returns the time of the entry, or the first time if it was repeated.
func firstTime(e *journal.Entry) time.Time {
	if e.First != nil {
		return *e.First
	}
	return e.At
}

// addEntry adds an entry.
func (c *stateTracker) addEntry(e *journal.Entry) {
	c.lastEntry = e
	switch {
	case e.Hold != nil:
		c.hold = e
	case e.Attempt != nil:
		// A handler was called, so the object is not held any more.
		c.hold = nil
		h := c.handlerFor(e.Attempt.Handler, e.Attempt.Purpose)
		if h.addAttempt(e); journal.IsForChanges(h.purpose) {
			c.decision, c.hasCalledHandler = e, true
		} else {
			c.routineCall = e
		}
	case e.Evaluation != nil:
		c.addEvaluation(e)
	}
}

// addEvaluation adds the decisions of a pass.
func (c *stateTracker) addEvaluation(e *journal.Entry) {
	look := e.Evaluation
	ofChanges := look.IsOfChange()
	// A raw event is delivered even while the object is held.
	if look.Reason != "event" {
		c.hold = nil
	}
	// A look that concerns a handler explains the state; one without such a handler only counts if there is nothing
	// else.
	if ofChanges && slices.ContainsFunc(look.Verdicts, concernsHandler) {
		c.decision = e
	} else {
		c.quietEvaluation = e
	}
	if !ofChanges {
		return
	}
	// Handlers without a verdict were called for an earlier change, which is over.
	for _, h := range c.handlers {
		if journal.IsForChanges(h.purpose) && h.isObsoleteAfter(look) {
			if h.state.IsProblem() {
				c.decision = e // the change with the problem is over
			}
			h.state = ""
		}
	}
	for i := range look.Verdicts {
		v := &look.Verdicts[i]
		c.handlerFor(v.Handler, v.Purpose).addVerdict(v, e)
	}
}

// concernsHandler reports whether the handler is selected for the change, even if it is not called now.
func concernsHandler(v journal.HandlerVerdict) bool {
	switch execution.SkipReason(v.Reason) {
	case "", execution.Asleep, execution.DependencyUnfinished, execution.NotPicked, execution.Blocked,
		execution.DependencyFailed,
		execution.Exceeded:
		return true
	}
	return false
}

// handlerFor returns the state of the handler, and creates it at its first entry.
func (c *stateTracker) handlerFor(id, on string) *handler {
	for _, h := range c.handlers {
		if h.id == id && h.purpose == on {
			return h
		}
	}
	h := &handler{id: id, purpose: on}
	c.handlers = append(c.handlers, h)
	return h
}

// isObsoleteAfter reports whether the look is about another change than the handler's last call, so that its state is
// obsolete. A permanent failure remains: another change does not repair it. Sub-handlers have no verdicts of their own;
// their state is obsolete if the look concerns no handler at all.
func (h *handler) isObsoleteAfter(look *journal.Evaluation) bool {
	if h.purpose == "sub-handler" {
		return !slices.ContainsFunc(look.Verdicts, concernsHandler)
	}
	return h.state != Failed && !slices.ContainsFunc(look.Verdicts, func(v journal.HandlerVerdict) bool {
		return v.Handler == h.id && v.Purpose == h.purpose
	})
}

// addAttempt sets the state after a call.
func (h *handler) addAttempt(e *journal.Entry) {
	a := e.Attempt
	h.attempt, h.until = a, a.Next
	switch a.Outcome {
	case journal.Failed:
		h.changeState(Failed, e)
	case journal.Retried:
		h.changeState(Retrying, e)
	case journal.Blocked:
		h.changeState(Blocked, e)
	case journal.Waiting, journal.Interrupted:
		// A daemon or timer always waits between its calls, so waiting is not worth showing.
		if journal.IsForChanges(h.purpose) {
			h.changeState(Waiting, e)
		} else {
			h.state = ""
		}
	default:
		h.state = ""
	}
}

// addVerdict sets the state after a decision about the handler. A handler that is called again after an error keeps
// the state Retrying until a call succeeds.
func (h *handler) addVerdict(v *journal.HandlerVerdict, e *journal.Entry) {
	h.until = nil
	switch execution.SkipReason(v.Reason) {
	case "":
		if h.state != Retrying {
			h.changeState(Running, e)
		}
	case execution.Asleep:
		if h.until = v.Until; h.state != Retrying {
			h.changeState(Waiting, e)
		}
	case execution.DependencyUnfinished, execution.NotPicked:
		h.changeState(Waiting, e)
	case execution.Blocked:
		h.changeState(Blocked, e)
	case execution.DependencyFailed, execution.Exceeded:
		h.changeState(Failed, e)
	case execution.Finished:
		// A handler that failed permanently also counts as finished, but the failure must remain visible.
		if h.state != Failed {
			h.state = ""
		}
	default:
		h.state = ""
	}
}

// explainedState is the state of an object with its explanation.
type explainedState struct {
	state ObjectCondition
	until *time.Time     // time of the operator's next action
	entry *journal.Entry // the entry that explains the state; nil without entries
	since time.Time      // beginning of the state, or time of the decision
	// isContinuing is true if since is the beginning of a continuing activity. Later entries then do not move it.
	isContinuing bool
}

// currentState returns the state of the object after all entries.
func (c *stateTracker) currentState() explainedState {
	switch {
	case c.gone:
		return c.settledState(Gone)
	case c.hold != nil && c.hold.Hold.Reason == journal.HeldBlocked:
		return explainedState{Blocked, nil, c.hold, firstTime(c.hold), true}
	case c.hold != nil && c.hold.Hold.Reason == journal.HeldFailure:
		return explainedState{Failed, nil, c.hold, firstTime(c.hold), true}
	case c.hold != nil && c.hold.Hold.Reason == journal.HeldPaused:
		return explainedState{Paused, nil, c.hold, firstTime(c.hold), true}
	case c.hold != nil:
		return explainedState{Throttled, c.hold.Hold.Until, c.hold, firstTime(c.hold), true}
	}
	// Find the most severe state of any handler, with the earliest beginning and the earliest next action among the
	// handlers in it.
	for _, state := range AllStates() {
		var found explainedState
		for _, h := range c.handlers {
			if h.state != state {
				continue
			}
			until := earlierTime(found.until, h.until)
			if found.entry == nil || h.since.Before(found.since) {
				found = explainedState{state: state, entry: h.entry, since: h.since, isContinuing: true}
			}
			found.until = until
		}
		if found.entry != nil {
			return found
		}
	}
	// No handler has pending work.
	switch {
	case c.hasCalledHandler:
		return c.settledState(Handled)
	case c.existedBefore:
		return c.settledState(Unknown)
	case c.routineCall != nil:
		return c.settledState(Handled)
	case c.decision != nil || c.quietEvaluation != nil:
		return c.settledState(Unchanged)
	default:
		return c.settledState(Seen)
	}
}

// settledState returns the state of an object without pending work. Periodic calls only explain it if there is no
// decision about a change.
func (c *stateTracker) settledState(state ObjectCondition) explainedState {
	if periodic := cmp.Or(c.routineCall, c.quietEvaluation); c.decision == nil && periodic != nil {
		return explainedState{state, nil, periodic, firstTime(periodic), true}
	}
	if last := cmp.Or(c.decision, c.lastEntry); last != nil {
		return explainedState{state: state, entry: last, since: last.At}
	}
	return explainedState{state: state}
}

// retryingHandlers returns the handlers that failed and will be called again.
func (c *stateTracker) retryingHandlers() (waiting []*handler) {
	if c.gone {
		return nil
	}
	for _, h := range c.handlers {
		if h.state == Retrying && h.attempt != nil {
			waiting = append(waiting, h)
		}
	}
	return waiting
}

// earlierTime returns the earlier time; nil counts as no time.
func earlierTime(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}
