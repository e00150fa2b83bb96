package facade

import (
	"fmt"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Workers sets how many objects of one kind are handled at once, in all namespaces together. Default: 100, as handlers
// may sleep.
//
// A handler holds one of them until it returns. Without a [Timeout], or if it does not end with its context, it may do
// so for ever; as many of these as there are workers stop the kind, which is told in the log with their ids. One worker
// in ten, at least one, is kept for deletions, and as many for all the rest, so that neither stops the other.
// Workers(1) runs no two handlers of a kind beside each other, and keeps nothing. Daemons and timers need no workers:
// see [MaxConcurrentDaemons], [MaxConcurrentTicks].
//
// Kopf: queueing.worker_limit, without a limit by default.
func Workers(n int) OperatorOption {
	return countSetting("Workers", n, func(s *settings) *int { return &s.workers })
}

// DefaultBackoff sets the delay after ordinary errors of handlers without a [Backoff] of their own. Default: 60
// seconds. Kopf: execution.default_backoff.
func DefaultBackoff(delay time.Duration) OperatorOption {
	return durationSetting("DefaultBackoff", delay, func(s *settings) *time.Duration { return &s.backoff })
}

// HandlerLifecycle decides which of the handlers that are due for an object are called in one go. Kopf:
// kopf.lifecycles.
type HandlerLifecycle = execution.Lifecycle

// The lifecycles, for [Lifecycle].
const (
	// InOrder calls all of them, in the order of registration, each when the one before has returned; the default.
	InOrder = execution.InOrder
	// ASAP calls the one with the fewest attempts, writes its outcome, and looks again. It is Kopf's default: asap.
	ASAP = execution.ASAP
	// OneByOne calls the first one until it is finished. Kopf: one_by_one.
	OneByOne = execution.OneByOne
	// AllAtOnce is InOrder under Kopf's name. Kopf: all_at_once.
	AllAtOnce = execution.AllAtOnce
	// Randomized calls one at random. Kopf: randomized.
	Randomized = execution.Randomized
	// Shuffled calls all of them in random order. Kopf: shuffled.
	Shuffled = execution.Shuffled
)

// Lifecycle sets which of the handlers that are due are called in one go, sub-handlers included. Default: [InOrder],
// also with [AsKopf]. Those that call one at a time write to the object after each. Kopf: set_default_lifecycle, with
// asap as the default.
func Lifecycle(lifecycle HandlerLifecycle) OperatorOption {
	return setting(func(s *settings) error {
		if !lifecycle.Valid() {
			return fmt.Errorf("Lifecycle(%d): there is no such lifecycle", lifecycle)
		}
		s.lifecycle = lifecycle
		return nil
	})
}

// Checkpoint sets how long the outcome of a handler may wait for its write while the next handler of the object is
// running: so much of what was done is done again after a crash. Default: one second. A longer time saves writes where
// handlers are slow. Kopf: none, it writes after each handler.
func Checkpoint(interval time.Duration) OperatorOption {
	return durationSetting("Checkpoint", interval, func(s *settings) *time.Duration { return &s.checkpoint })
}

// MaxConcurrentDaemons limits how many daemons run at once. Further ones wait for their turn, with a line in the log.
// Default: no limit.
func MaxConcurrentDaemons(n int) OperatorOption {
	return countSetting("MaxConcurrentDaemons", n, func(s *settings) *int { return &s.daemons })
}

// MaxConcurrentTicks limits how many calls of timers run at once; further ones wait for their turn. Default: 1000.
func MaxConcurrentTicks(n int) OperatorOption {
	return countSetting("MaxConcurrentTicks", n, func(s *settings) *int { return &s.ticks })
}

// DefaultCancelPolling is how often the log mentions daemons and timers that do not end, without a [CancelPolling] of
// their own. Default: a minute. Kopf: background.cancellation_polling.
func DefaultCancelPolling(interval time.Duration) OperatorOption {
	return durationSetting(
		"DefaultCancelPolling", interval, func(s *settings) *time.Duration { return &s.cancelPolling },
	)
}

// ErrorDelays sets how an object is spaced while the framework itself fails for it: an API server that does not take
// its writes, a filter that panics. After each failure in a row the next delay is waited, then the last one again and
// again; a success begins anew. Other objects go on. With no delays at all, the object waits for its next event,
// whenever that is.
//
// Default: 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 seconds. Kopf: queueing.error_delays.
func ErrorDelays(delays ...time.Duration) OperatorOption {
	return delaysSetting("ErrorDelays", delays, func(s *settings) *[]time.Duration { return &s.errorDelays })
}

// APIBackoffs has requests of the framework repeated on the spot, after these delays: those that fail for want of a
// connection, or with the status 403, 429 or 5xx. The object, and its place among those that are handled at once, waits
// meanwhile; the requests of handlers through their clients are not concerned. When the last attempt has failed,
// [ErrorDelays] take over.
//
// Default: none, as the delays of the object do the same, and leave the place to others. Kopf:
// networking.error_backoffs, which are 1, 1, 2, 3, 5, 8, 13, 21 seconds by default.
func APIBackoffs(delays ...time.Duration) OperatorOption {
	return delaysSetting("APIBackoffs", delays, func(s *settings) *[]time.Duration { return &s.apiBackoffs })
}

// ObeyRetryAfter lets the API server shorten the delays of [APIBackoffs] when it has too many requests; without the
// option, it can only make them longer. Kopf: networking.enforce_retry_after.
func ObeyRetryAfter() OperatorOption {
	return setting(func(s *settings) error {
		s.obeyRetryAfter = true
		return nil
	})
}

// countSetting sets a number of something, of which there must be one at least.
func countSetting(name string, n int, field func(*settings) *int) OperatorOption {
	return setting(func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("%s(%d): it must be at least 1", name, n)
		}
		*field(s) = n
		return nil
	})
}

func durationSetting(name string, d time.Duration, field func(*settings) *time.Duration) OperatorOption {
	return setting(func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("%s(%s): it must be positive", name, d)
		}
		*field(s) = d
		return nil
	})
}

// delaysSetting sets delays to be waited one after the other. None at all is an empty list, and not the default.
func delaysSetting(name string, delays []time.Duration, field func(*settings) *[]time.Duration) OperatorOption {
	own := append([]time.Duration{}, delays...)
	return setting(func(s *settings) error {
		if i := slices.IndexFunc(own, func(d time.Duration) bool { return d <= 0 }); i >= 0 {
			return fmt.Errorf(
				"%s: the delay %s is not positive: the API server would be asked again and again", name, own[i],
			)
		}
		*field(s) = own
		return nil
	})
}
