package facade

import (
	"fmt"
	"time"
)

// MostDaemons limits how many daemons run at once. Further ones wait for their turn, with a line in the log. Default:
// no limit.
func MostDaemons(n int) OperatorOption {
	return setting(func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("MostDaemons(%d): at least one must be allowed", n)
		}
		s.daemons = n
		return nil
	})
}

// MostTicks limits how many calls of timers run at once; further ones wait for their turn. Default: 1000.
func MostTicks(n int) OperatorOption {
	return setting(func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("MostTicks(%d): at least one must be allowed", n)
		}
		s.ticks = n
		return nil
	})
}

// DefaultCancelPolling is how often the log mentions daemons and timers that do not end, without a [CancelPolling] of
// their own. Default: a minute. Kopf: background.cancellation_polling.
func DefaultCancelPolling(interval time.Duration) OperatorOption {
	return setting(func(s *settings) error {
		if interval <= 0 {
			return fmt.Errorf("DefaultCancelPolling(%s): it must be positive", interval)
		}
		s.cancelPolling = interval
		return nil
	})
}
