package overview

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
	// Seen was brought by the watch, and nothing was decided yet.
	Seen State = "seen"
	// Gone is deleted.
	Gone State = "gone"
)

// States are all of them, in this order.
func States() []State {
	return []State{Throttled, Blocked, Failed, Retrying, Running, Waiting, Handled, Unchanged, Seen, Gone}
}

// Problem tells whether somebody should look at the object.
func (s State) Problem() bool { return slices.Contains(States()[:4], s) }

// course is what the entries of an object come to; they are taken in the order of time.
type course struct {
	gone     bool
	handlers []*handler
	called   bool
	hold     *journal.Entry // nil if the object was handled since
	decision *journal.Entry // the last one that somebody was concerned by
	quiet    *journal.Entry // the last one that nobody was
	last     *journal.Entry
}

// handler is how one of them stands; an empty state is at rest.
type handler struct {
	id, on  string
	state   State
	until   *time.Time
	attempt *journal.Attempt
}

func (c *course) take(e *journal.Entry) {
	c.last = e
	switch {
	case e.Hold != nil:
		c.hold, c.decision = e, e
	case e.Attempt != nil:
		c.hold, c.decision, c.called = nil, e, true
		c.handler(e.Attempt.Handler, e.Attempt.On).takeAttempt(e.Attempt)
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
			h.state = ""
		}
	}
	for i := range look.Verdicts {
		v := &look.Verdicts[i]
		c.handler(v.Handler, v.On).takeVerdict(v)
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

func (h *handler) takeAttempt(a *journal.Attempt) {
	h.attempt, h.until, h.state = a, a.Next, ""
	switch a.Outcome {
	case journal.Failed:
		h.state = Failed
	case journal.Retried:
		h.state = Retrying
	case journal.Blocked:
		h.state = Blocked
	case journal.Waiting, journal.Interrupted:
		if h.ofChanges() {
			h.state = Waiting
		}
	}
}

func (h *handler) takeVerdict(v *journal.Verdict) {
	switch execution.Why(v.Why) {
	case "":
		h.state, h.until = Running, nil
	case execution.Asleep:
		if h.until = v.Until; h.state != Retrying {
			h.state = Waiting
		}
	case execution.Awaiting, execution.NotPicked:
		h.state, h.until = Waiting, nil
	case execution.Blocked:
		h.state, h.until = Blocked, nil
	case execution.Missed, execution.Exceeded:
		h.state, h.until = Failed, nil
	case execution.Finished:
		if h.state != Failed {
			h.state = ""
		}
	default:
		h.state = ""
	}
}

// state is that of the object, and when something is done for it by itself.
func (c *course) state() (State, *time.Time) {
	switch {
	case c.gone:
		return Gone, nil
	case c.hold != nil && c.hold.Hold.Why == journal.HeldBlocked:
		return Blocked, nil
	case c.hold != nil && c.hold.Hold.Why == journal.HeldFailure:
		return Failed, nil
	case c.hold != nil:
		return Throttled, c.hold.Hold.Until
	}
	for _, state := range States() {
		var until *time.Time
		found := false
		for _, h := range c.handlers {
			if h.state == state {
				found, until = true, earlier(until, h.until)
			}
		}
		if found {
			return state, until
		}
	}
	switch {
	case c.called:
		return Handled, nil
	case c.decision != nil || c.quiet != nil:
		return Unchanged, nil
	default:
		return Seen, nil
	}
}

// telling is the entry that says most of what was decided last.
func (c *course) telling() *journal.Entry {
	switch {
	case c.decision != nil:
		return c.decision
	case c.quiet != nil:
		return c.quiet
	default:
		return c.last
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
