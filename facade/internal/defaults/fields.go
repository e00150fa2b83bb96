package defaults

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Problems returns the errors that are not nil.
func Problems(all ...error) []error {
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// Duration fills in the default of a duration, or checks the given one. The named duration that the field accepts is
// zero if there is not one.
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

// durationName is the name of a duration in Go.
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

// Number fills in the default of a number, or checks the given one. Without a default, zero means unlimited.
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

// CheckEventNamePrefix returns the mistakes of Posting.EventNamePrefix.
func CheckEventNamePrefix(prefix string) (problems []error) {
	if prefix == "" {
		return nil
	}
	for _, wrong := range validation.NameIsDNSSubdomain(prefix, true) {
		problems = append(problems, fmt.Errorf("Posting.EventNamePrefix: %q: %s", prefix, wrong))
	}
	return problems
}

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

// CheckPositive returns the mistake in the duration of an option, which must be above zero.
func CheckPositive(name string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s(%s): it must be positive", name, d)
	}
	return shortDuration(name, d)
}

// CheckDelay returns the mistake in the duration of an option that can be zero.
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

// ProgramOnly returns an error for a setting that only a program of its own can have, with what others do instead.
func ProgramOnly(name string, isSet bool, instead string) error {
	if !isSet {
		return nil
	}
	return fmt.Errorf("%s: it is for kopf.Main; here, %s", name, instead)
}

// Same reports whether the value of a field has not changed, as far as such values can be compared.
func Same(one, other any) bool {
	a, b := reflect.ValueOf(one), reflect.ValueOf(other)
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	return !a.IsValid() || !a.Comparable() || !b.Comparable() || one == other
}
