package defaults

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Problems returns the errors that are not nil.
func Problems(all ...error) []error {
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// Duration fills in the default of a duration, or checks what is given. The named duration that the field accepts is
// zero for none.
func Duration(name string, value *time.Duration, fallback, named time.Duration) error {
	if *value == 0 {
		*value = fallback
		return nil
	}
	if err := checkDuration(*value, fallback, named); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func checkDuration(value, fallback, named time.Duration) error {
	switch {
	case value == named:
		return nil
	case value >= 0:
		return TooShort(value)
	}
	right := "it must be positive, or zero for the default"
	if fallback != 0 {
		right += " of " + fallback.String()
	}
	if named != 0 {
		right += ", or " + durationName(named)
	}
	return fmt.Errorf("%s: %s", durationName(value), right)
}

// durationName is what a duration is called in Go.
func durationName(d time.Duration) string {
	switch d {
	case Never:
		return "kopf.Never"
	case Immediately:
		return "kopf.Immediately"
	default:
		return d.String()
	}
}

// CheckDelays checks a list of delays.
func CheckDelays(name string, delays []time.Duration) (problems []error) {
	for i, delay := range delays {
		err := TooShort(delay)
		if delay <= 0 {
			err = fmt.Errorf(
				"%s is not positive: the API server would be asked again and again", durationName(delay),
			)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s[%d]: %w", name, i, err))
		}
	}
	return problems
}

// Number fills in the default of a number, or checks what is given. Without a default, zero is no limit.
func Number(name string, value *int, fallback int) error {
	given := *value
	*value = cmp.Or(given, fallback)
	switch {
	case given >= 0:
		return nil
	case fallback == 0:
		return fmt.Errorf("%s: %d: it must be positive, or zero for no limit", name, given)
	default:
		return fmt.Errorf("%s: %d: it must be positive, or zero for the default of %d", name, given, fallback)
	}
}
