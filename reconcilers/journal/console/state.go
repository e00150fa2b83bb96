package console

import (
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// State is how an object stands, in a word.
type State string

// The states, the one that says most first: an object whose handlers stand differently has the first of theirs.
const (
	// Throttled is held after an error of the framework.
	Throttled State = "throttled"
	// Blocked is not handled until it changes.
	Blocked State = "blocked"
	// Failed has a handler that has failed for good.
	Failed State = "failed"
	// Retrying has a handler that has failed and is called again.
	Retrying State = "retrying"
	// Running has a handler that is being called, or is next.
	Running State = "running"
	// Waiting has a handler that waits: for its time, its sub-handlers, a child, or for other handlers.
	Waiting State = "waiting"
	// Handled has nothing left to be done, after handlers were called.
	Handled State = "handled"
	// Unchanged has nothing left to be done: nothing essential has changed, or no handler is for it.
	Unchanged State = "unchanged"
	// Unknown was there before this process, which has not called a handler of changes for it: what came of its last
	// change is not known.
	Unknown State = "unknown"
	// Seen was brought by the watch, and nothing was decided yet.
	Seen State = "seen"
	// Gone is deleted.
	Gone State = "gone"
)

// States are all of them, in this order.
func States() []State {
	return []State{Throttled, Blocked, Failed, Retrying, Running, Waiting, Handled, Unchanged, Unknown, Seen, Gone}
}

// problems is the number of states that need a user's attention; they come first.
const problems = 4

// Problem reports whether the object needs a user's attention.
func (s State) Problem() bool { return s.severity() < problems }

// severity is the place of a problem among the states; all others have the same.
func (s State) severity() int {
	if at := slices.Index(States(), s); at >= 0 {
		return min(at, problems)
	}
	return problems
}

// course is what the entries of an object come to; they are taken in the order of time.
type course struct {
	gone bool
	// before is true of an object with handlers of changes that was there before this process.
	before   bool
	handlers []*handler
	called   bool           // a handler of changes was called
	hold     *journal.Entry // nil if the object was handled since
	decision *journal.Entry // the last one about a change that concerned a handler
	routine  *journal.Entry // the last call for a raw event or a child, or in the background
	quiet    *journal.Entry // the last look that concerned no handler
	last     *journal.Entry
}

// handler is how one of them stands; an empty state is at rest.
type handler struct {
	id, on  string
	state   State
	until   *time.Time
	attempt *journal.Attempt
	// by is the entry that the state comes from, since is when the state began.
	by    *journal.Entry
	since time.Time
}

// become changes the state. A look that finds a handler as the last attempt left it says less than the attempt did.
func (h *handler) become(state State, by *journal.Entry) {
	if h.state != state {
		h.since = began(by)
	}
	if h.state != state || h.by.Attempt == nil || by.Attempt != nil {
		h.by = by
	}
	h.state = state
}

// began is when what the entry says happened first.
func began(e *journal.Entry) time.Time {
	if e.First != nil {
		return *e.First
	}
	return e.At
}

func (c *course) take(e *journal.Entry) {
	c.last = e
	switch {
	case e.Hold != nil:
		c.hold = e
	case e.Attempt != nil:
		c.hold = nil
		h := c.handler(e.Attempt.Handler, e.Attempt.On)
		if h.takeAttempt(e); h.ofChanges() {
			c.decision, c.called = e, true
		} else {
			c.routine = e
		}
	case e.Look != nil:
		c.takeLook(e)
	}
}

func (c *course) takeLook(e *journal.Entry) {
	look := e.Look
	ofChanges := look.OfChange()
	if look.Reason != "event" {
		c.hold = nil
	}
	if ofChanges && slices.ContainsFunc(look.Verdicts, concerns) {
		c.decision = e
	} else {
		c.quiet = e
	}
	if !ofChanges {
		return
	}
	for _, h := range c.handlers {
		if h.ofChanges() && h.forgotten(look) {
			if h.state.Problem() {
				c.decision = e // the change with the problem is over
			}
			h.state = ""
		}
	}
	for i := range look.Verdicts {
		v := &look.Verdicts[i]
		c.handler(v.Handler, v.On).takeVerdict(v, e)
	}
}

// concerns tells whether the handler is for what has happened, be it its turn or not.
func concerns(v journal.Verdict) bool {
	switch execution.Why(v.Why) {
	case "", execution.Asleep, execution.Awaiting, execution.NotPicked, execution.Blocked, execution.Missed,
		execution.Exceeded:
		return true
	}
	return false
}

func (c *course) handler(id, on string) *handler {
	for _, h := range c.handlers {
		if h.id == id && h.on == on {
			return h
		}
	}
	h := &handler{id: id, on: on}
	c.handlers = append(c.handlers, h)
	return h
}

// ofChanges tells whether the handler is called until it is done with a change. The others go on for ever.
func (h *handler) ofChanges() bool {
	switch h.on {
	case "event", "child", "daemon", "timer":
		return false
	}
	return true
}

// forgotten tells whether the look is about something else than what the handler was called for: it is not asked any
// more. But what has failed for good was not done by that. Nobody asks sub-handlers: they are a part of those that are
// asked.
func (h *handler) forgotten(look *journal.Look) bool {
	if h.on == "sub-handler" {
		return !slices.ContainsFunc(look.Verdicts, concerns)
	}
	return h.state != Failed && !slices.ContainsFunc(look.Verdicts, func(v journal.Verdict) bool {
		return v.Handler == h.id && v.On == h.on
	})
}

func (h *handler) takeAttempt(e *journal.Entry) {
	a := e.Attempt
	h.attempt, h.until = a, a.Next
	switch a.Outcome {
	case journal.Failed:
		h.become(Failed, e)
	case journal.Retried:
		h.become(Retrying, e)
	case journal.Blocked:
		h.become(Blocked, e)
	case journal.Waiting, journal.Interrupted:
		if h.ofChanges() {
			h.become(Waiting, e)
		} else {
			h.state = ""
		}
	default:
		h.state = ""
	}
}

// takeVerdict takes what a look says of the handler. One that is called again after an error is not better before the
// call has succeeded.
func (h *handler) takeVerdict(v *journal.Verdict, e *journal.Entry) {
	h.until = nil
	switch execution.Why(v.Why) {
	case "":
		if h.state != Retrying {
			h.become(Running, e)
		}
	case execution.Asleep:
		if h.until = v.Until; h.state != Retrying {
			h.become(Waiting, e)
		}
	case execution.Awaiting, execution.NotPicked:
		h.become(Waiting, e)
	case execution.Blocked:
		h.become(Blocked, e)
	case execution.Missed, execution.Exceeded:
		h.become(Failed, e)
	case execution.Finished:
		if h.state != Failed {
			h.state = ""
		}
	default:
		h.state = ""
	}
}

// standing is how an object stands.
type standing struct {
	state State
	until *time.Time     // when something is done for it by itself
	by    *journal.Entry // what says why; nil if there are no entries
	since time.Time      // when the state began, or the decision was made
	// lasts is true if since is the beginning of a continuing activity, so that it cannot become later.
	lasts bool
}

func (c *course) standing() standing {
	switch {
	case c.gone:
		return c.settled(Gone)
	case c.hold != nil && c.hold.Hold.Why == journal.HeldBlocked:
		return standing{Blocked, nil, c.hold, began(c.hold), true}
	case c.hold != nil && c.hold.Hold.Why == journal.HeldFailure:
		return standing{Failed, nil, c.hold, began(c.hold), true}
	case c.hold != nil:
		return standing{Throttled, c.hold.Hold.Until, c.hold, began(c.hold), true}
	}
	for _, state := range States() {
		var found standing
		for _, h := range c.handlers {
			if h.state != state {
				continue
			}
			until := earlier(found.until, h.until)
			if found.by == nil || h.since.Before(found.since) {
				found = standing{state: state, by: h.by, since: h.since, lasts: true}
			}
			found.until = until
		}
		if found.by != nil {
			return found
		}
	}
	switch {
	case c.called:
		return c.settled(Handled)
	case c.before:
		return c.settled(Unknown)
	case c.routine != nil:
		return c.settled(Handled)
	case c.decision != nil || c.quiet != nil:
		return c.settled(Unchanged)
	default:
		return c.settled(Seen)
	}
}

// settled returns the state of an object without pending work. Periodic calls determine it only if there is no other
// entry.
func (c *course) settled(state State) standing {
	switch {
	case c.decision != nil:
		return standing{state: state, by: c.decision, since: c.decision.At}
	case c.routine != nil:
		return standing{state, nil, c.routine, began(c.routine), true}
	case c.quiet != nil:
		return standing{state, nil, c.quiet, began(c.quiet), true}
	case c.last != nil:
		return standing{state: state, by: c.last, since: c.last.At}
	default:
		return standing{state: state}
	}
}

// retries are the handlers that have failed, and are called again.
func (c *course) retries() (waiting []*handler) {
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

func earlier(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}
