package facade

import (
	"fmt"
	"slices"
	"time"
)

// ErrorDelays sets how an object is spaced while the framework itself fails for it: an API server that does not take its writes,
// a filter that panics. After each failure in a row the next delay is waited, then the last one again and again; a success
// begins anew. Other objects go on. With no delays at all, the object waits for its next event, whenever that is.
//
// Default: 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 seconds. Kopf: queueing.error_delays.
func ErrorDelays(delays ...time.Duration) OperatorOption {
	own := append([]time.Duration{}, delays...)
	return setting(func(s *settings) error {
		if i := slices.IndexFunc(own, func(d time.Duration) bool { return d <= 0 }); i >= 0 {
			return fmt.Errorf("ErrorDelays: the delay %s is not positive: the API server would be asked again and again", own[i])
		}
		s.errorDelays = own
		return nil
	})
}
