package defaults

import (
	"fmt"
	"math"
	"time"
)

// These stand for durations, as those of package facade.
const (
	Never       time.Duration = math.MinInt64
	Immediately time.Duration = math.MinInt64 + 1
)

// Shortest is the shortest duration that can be meant. A bare number is nanoseconds in Go, so that Timeout(60) and
// Timer("t", 60, fn) compile, and would be over before they began.
const Shortest = time.Millisecond

// TooShort says of a positive duration that it cannot be meant; nil for all others. "60ns: did you mean
// 60*time.Second?"
func TooShort(d time.Duration) error {
	const day = 24 * 60 * 60 // in seconds, as a bare number would be
	switch {
	case d <= 0 || d >= Shortest:
		return nil
	case d <= day:
		return fmt.Errorf("%s: did you mean %d*time.Second?", d, d.Nanoseconds())
	default:
		return fmt.Errorf("%s: the shortest duration is %s", d, Shortest)
	}
}

// CheckPositive tells what is wrong with the duration of an option, which must be above zero.
func CheckPositive(name string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s(%s): it must be positive", name, d)
	}
	return shortDuration(name, d)
}

// CheckDelay tells what is wrong with the duration of an option for which zero is not at all.
func CheckDelay(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s(%s): it must not be negative", name, d)
	}
	return shortDuration(name, d)
}

func shortDuration(name string, d time.Duration) error {
	if err := TooShort(d); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
