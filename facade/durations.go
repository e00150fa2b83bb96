package kopf

import (
	"fmt"
	"time"
)

// shortest is the shortest duration that can be meant. A bare number is nanoseconds in Go, so that Timeout(60) and
// Timer("t", 60, fn) compile, and would be over before they began.
const shortest = time.Millisecond

// tooShort says of a positive duration that it cannot be meant; nil for all others. "60ns: did you mean
// 60*time.Second?"
func tooShort(d time.Duration) error {
	const day = 24 * 60 * 60 // in seconds, as a bare number would be
	switch {
	case d <= 0 || d >= shortest:
		return nil
	case d <= day:
		return fmt.Errorf("%s: did you mean %d*time.Second?", d, d.Nanoseconds())
	default:
		return fmt.Errorf("%s: the shortest duration is %s", d, shortest)
	}
}

// positiveDuration tells what is wrong with the duration of an option, which must be above zero.
func positiveDuration(name string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s(%s): it must be positive", name, d)
	}
	return shortDuration(name, d)
}

// delayDuration tells what is wrong with the duration of an option for which zero is not at all.
func delayDuration(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s(%s): it must not be negative", name, d)
	}
	return shortDuration(name, d)
}

func shortDuration(name string, d time.Duration) error {
	return named(name, tooShort(d))
}
