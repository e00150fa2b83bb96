package handlers

import "time"

// Background says when a spawning handler runs, and how it is stopped. No duration is negative.
type Background struct {
	// Daemon is one call that goes on; otherwise the calls are the ticks of a timer.
	Daemon bool
	// InitialDelay is how long to wait for the first call, by the object as it is then; nil is not at all.
	InitialDelay func(body map[string]any) (time.Duration, error)
	// Interval is from the end of a tick to the next one; with Sharp, the ticks are on a grid from the start of the
	// last one. Without an interval, there is one tick, or one for each time of idling.
	Interval time.Duration
	Sharp    bool
	// Idle is how long nothing that matters must have changed before a tick.
	Idle time.Duration
	// Jitter is the share of the interval by which it is made longer at random, at most.
	Jitter float64
	// CancelBackoff is from the request to stop to the end of the context; CancelTimeout is from then until the handler
	// is abandoned, and zero is never.
	CancelBackoff, CancelTimeout time.Duration
	// CancelPolling is how often it is mentioned that the handler does not end; zero is the default.
	CancelPolling time.Duration
}
