package facade

import (
	"fmt"
	"slices"
	"time"
)

// ErrorDelays sets how an object is spaced while the framework itself fails for it: an API server that does not take
// its writes, a filter that panics. After each failure in a row the next delay is waited, then the last one again and
// again; a success begins anew. Other objects go on. With no delays at all, the object waits for its next event,
// whenever that is.
//
// Default: 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 seconds. Kopf: queueing.error_delays.
func ErrorDelays(delays ...time.Duration) OperatorOption {
	own := append([]time.Duration{}, delays...)
	return setting(func(s *settings) error {
		if i := slices.IndexFunc(own, func(d time.Duration) bool { return d <= 0 }); i >= 0 {
			return fmt.Errorf(
				"ErrorDelays: the delay %s is not positive: the API server would be asked again and again", own[i],
			)
		}
		s.errorDelays = own
		return nil
	})
}

// APIBackoffs has requests of the framework repeated on the spot, after these delays: those that fail for want of a
// connection, or with the status 403, 429 or 5xx. The object, and its place among those that are handled at once, waits
// meanwhile; the requests of handlers through their clients are not concerned. When the last attempt has failed,
// [ErrorDelays] take over.
//
// Default: none, as the delays of the object do the same, and leave the place to others. Kopf:
// networking.error_backoffs, which are 1, 1, 2, 3, 5, 8, 13, 21 seconds by default.
func APIBackoffs(delays ...time.Duration) OperatorOption {
	own := append([]time.Duration{}, delays...)
	return setting(func(s *settings) error {
		if i := slices.IndexFunc(own, func(d time.Duration) bool { return d <= 0 }); i >= 0 {
			return fmt.Errorf(
				"APIBackoffs: the delay %s is not positive: the API server would be asked again and again", own[i],
			)
		}
		s.apiBackoffs = own
		return nil
	})
}

// ObeyRetryAfter lets the API server shorten the delays of [APIBackoffs] when it has too many requests; without the
// option, it can only make them longer. Kopf: networking.enforce_retry_after.
func ObeyRetryAfter() OperatorOption {
	return setting(func(s *settings) error {
		s.obeyRetryAfter = true
		return nil
	})
}
