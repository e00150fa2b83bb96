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

// NonNilErrors returns the errors that are not nil.
func NonNilErrors(all ...error) []error {
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// ResolveDuration sets the default of a duration field, or checks the given value. The parameter named is the special
// value that the field accepts, [Never] or [Immediately], or zero for none.
func ResolveDuration(name string, value *time.Duration, fallback, named time.Duration) error {
	if *value == 0 {
		*value = fallback
		return nil
	}
	if err := checkDuration(*value, fallback, named); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkDuration returns an error with the accepted values of the field.
func checkDuration(value, fallback, named time.Duration) error {
	switch {
	case value == named:
		return nil
	case value >= 0:
		return CheckMinimumDuration(value)
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

// durationName returns a duration as Go code, because the special values print as meaningless negative numbers.
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

// CheckDelays returns the mistakes of a list of delays between requests.
func CheckDelays(name string, delays []time.Duration) (problems []error) {
	for i, delay := range delays {
		// Zero is also an error here: a list has no default for its elements.
		err := CheckMinimumDuration(delay)
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

// ResolveNumber sets the default of a number field, or checks the given value. Without a default, zero means no limit.
func ResolveNumber(name string, value *int, fallback int) error {
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

// MaxShards limits the number of ranges that replicas share: each has a Lease, and a watch of each kind.
const MaxShards = 1024

// CheckShards checks the number of ranges.
func CheckShards(name string, given int) error {
	if given < 0 || given > MaxShards {
		return fmt.Errorf("%s: %d: it must be from 1 to %d, or zero for one replica that handles all objects", name,
			given, MaxShards)
	}
	return nil
}

// CheckEventNamePrefix returns the mistakes of Posting.EventNamePrefix.
func CheckEventNamePrefix(prefix string) (problems []error) {
	if prefix == "" {
		return nil
	}
	// The API server completes the prefix to a name, so it may end with a dash.
	for _, wrong := range validation.NameIsDNSSubdomain(prefix, true) {
		problems = append(problems, fmt.Errorf("Posting.EventNamePrefix: %q: %s", prefix, wrong))
	}
	return problems
}

// Special values of durations, equal to the constants of the same names in package facade.
const (
	// They are at the end of the range, so that no mistaken negative duration equals them.
	Never       time.Duration = math.MinInt64
	Immediately time.Duration = math.MinInt64 + 1
)

// MinDuration is the shortest valid duration. An untyped constant is a number of nanoseconds, so Timeout(60) and
// Timer("t", 60, fn) compile, although the user means seconds.
const MinDuration = time.Millisecond

// CheckMinimumDuration returns an error for a positive duration below [MinDuration], and nil for all others. The text
// suggests seconds: "60ns: did you mean 60*time.Second?"
func CheckMinimumDuration(d time.Duration) error {
	const day = 24 * 60 * 60 // in seconds, as a bare number would be
	switch {
	case d <= 0 || d >= MinDuration:
		return nil
	// A larger number is hardly a number of seconds, so the error makes no suggestion.
	case d <= day:
		return fmt.Errorf("%s: did you mean %d*time.Second?", d, d.Nanoseconds())
	default:
		return fmt.Errorf("%s: the shortest duration is %s", d, MinDuration)
	}
}

// CheckPositive returns the mistake of a duration option that must be above zero.
func CheckPositive(name string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s(%s): it must be positive", name, d)
	}
	return checkNamedDuration(name, d)
}

// CheckDelay returns the mistake of a duration option that may be zero.
func CheckDelay(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s(%s): it must not be negative", name, d)
	}
	return checkNamedDuration(name, d)
}

// checkNamedDuration adds the name of the option to the error of [CheckMinimumDuration].
func checkNamedDuration(name string, d time.Duration) error {
	if err := CheckMinimumDuration(d); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// CheckProgramOnly returns an error if a setting is set that only kopf.Main supports. The parameter instead contains
// the alternative for other operators.
func CheckProgramOnly(name string, isSet bool, instead string) error {
	if !isSet {
		return nil
	}
	return fmt.Errorf("%s: it is for kopf.Main; here, %s", name, instead)
}

// IsUnchanged reports whether a field of an interface type has the same value. Values that are not comparable count as
// equal: Go would panic, and a false difference would stop a valid operator.
func IsUnchanged(one, other any) bool {
	a, b := reflect.ValueOf(one), reflect.ValueOf(other)
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	return !a.IsValid() || !a.Comparable() || !b.Comparable() || one == other
}
