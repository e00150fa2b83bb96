package facade

import (
	"fmt"
	"time"
)

// Checkpoint sets how long the outcome of a handler may wait for its write while the next handler of the object is
// running: so much of what was done is done again after a crash. Default: one second. A longer time saves writes where
// handlers are slow. Kopf: none, it writes after each handler.
func Checkpoint(interval time.Duration) OperatorOption {
	return setting(func(s *settings) error {
		if interval <= 0 {
			return fmt.Errorf("Checkpoint(%s): the interval must be positive", interval)
		}
		s.checkpoint = interval
		return nil
	})
}
