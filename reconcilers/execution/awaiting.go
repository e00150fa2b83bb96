package execution

import "time"

// Wake makes it due: what it waits for has come, or must be looked for anew.
func (e *HandlerState) Wake() { e.awake = true }

// Delay is the time until the next attempt.
func (e *HandlerState) Delay(now time.Time) time.Duration { return e.delay(now) }

// await takes up what the outcome says of a wait, and tells whether it is one of the handler itself: that has no
// message. A wait that an error has interrupted goes on by its time.
func (e *HandlerState) await(o Outcome, now time.Time) bool {
	if o.Awaited.Child != "" {
		child, until := o.Awaited.Child, o.Awaited.Until
		if e.Awaited, e.Until = &child, nil; !until.IsZero() {
			e.Until = &until
		}
	} else if e.Finished() || e.Until == nil || !e.Until.After(now) {
		e.Awaited, e.Until = nil, nil
	}
	return !o.Awaited.Until.IsZero()
}
