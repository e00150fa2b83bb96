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

// number is a whole one, in decimal digits only: 010 is ten.
type number int

// Set is of [pflag.Value].
func (n *number) Set(text string) error {
	value, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return errors.New("it is not a whole number, or is too large")
	}
	*n = number(value)
	return nil
}

func (n *number) String() string { return strconv.Itoa(int(*n)) }

// Type is of [pflag.Value].
func (*number) Type() string { return "number" }

// maxLifetime is a year: whoever wants more wants another operator.
const maxLifetime = 365 * 24 * time.Hour

// lifetime is a number of seconds, as in Kopf, or a duration of Go. Records have whole seconds.
type lifetime time.Duration

// Set is of [pflag.Value].
func (l *lifetime) Set(text string) error {
	text = strings.TrimSpace(text)
	value, err := time.ParseDuration(text)
	if seconds, whole := strconv.ParseInt(text, 10, 64); whole == nil {
		value, err = time.Duration(min(max(seconds, 0), int64(maxLifetime/time.Second)+1))*time.Second, nil
	}
	switch {
	case err != nil:
		return errors.New("it is neither a number of seconds, such as 600, nor a duration, such as 10m")
	case value < time.Second || value > maxLifetime:
		return fmt.Errorf("it is not between a second and %d days", maxLifetime/(24*time.Hour))
	}
	*l = lifetime(value.Truncate(time.Second))
	return nil
}

func (l *lifetime) String() string {
	if *l == 0 {
		return "" // the help shows no default then
	}
	return time.Duration(*l).String()
}

// Type is of [pflag.Value].
func (*lifetime) Type() string { return "seconds" }

// checkPeering tells whether there can be a peering object of this name.
func checkPeering(cmd *cobra.Command, name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return asUsage(cmd, fmt.Errorf(
			"-P (--peering): %q is not the name of a peering object: %s", name, problems[0],
		))
	}
	return nil
}
