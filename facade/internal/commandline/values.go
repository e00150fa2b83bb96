package commandline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// number is a decimal integer. A leading zero does not make it octal, unlike in pflag's own integers: 010 is ten.
type number int

// Set implements [pflag.Value].
func (n *number) Set(text string) error {
	value, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return errors.New("it is not a whole number, or is too large")
	}
	*n = number(value)
	return nil
}

// String implements [pflag.Value].
func (n *number) String() string { return strconv.Itoa(int(*n)) }

// Type implements [pflag.Value].
func (*number) Type() string { return "number" }

// maxLifetime is a year. An operator that must pause longer should not run at all.
const maxLifetime = 365 * 24 * time.Hour

// lifetime is a number of seconds, as in Kopf, or a Go duration. It is truncated to seconds, the unit of records.
type lifetime time.Duration

// Set implements [pflag.Value].
func (l *lifetime) Set(text string) error {
	text = strings.TrimSpace(text)
	value, err := time.ParseDuration(text)
	// The bounds prevent an overflow of the multiplication; a value beyond the limit still fails below.
	if seconds, whole := strconv.ParseInt(text, 10, 64); whole == nil {
		value, err = time.Duration(min(max(seconds, 0), int64(maxLifetime/time.Second)+1))*time.Second, nil
	}
	switch {
	case err != nil:
		return errors.New("it is neither a number of seconds, such as 600, nor a duration, such as 10m")
	// A shorter lifetime would be zero in a record, which removes it.
	case value < time.Second || value > maxLifetime:
		return fmt.Errorf("it is not between a second and %d days", maxLifetime/(24*time.Hour))
	}
	*l = lifetime(value.Truncate(time.Second))
	return nil
}

// String implements [pflag.Value].
func (l *lifetime) String() string {
	if *l == 0 {
		return "" // the help then shows no default
	}
	return time.Duration(*l).String()
}

// Type implements [pflag.Value].
func (*lifetime) Type() string { return "seconds" }

// checkPeering returns an error if a peering object cannot have this name. An empty name is not given.
func checkPeering(cmd *cobra.Command, name string) error {
	if name == "" {
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return asUsageError(cmd, fmt.Errorf(
			"-P (--peering): %q is not the name of a peering object: %s", name, problems[0],
		))
	}
	return nil
}
