package session

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// refused repeats a dry run until it is rejected, because the API server uses a changed webhook configuration only
// after a delay.
func (s *Session) refused(ctx context.Context, act Action) error {
	deadline := time.NewTimer(s.handlerTimeout())
	defer deadline.Stop()
	for {
		output, err := s.ask(ctx, s.arguments(act)...)
		missing, wrong := unmatched(act.Lines, output)
		if wrong != nil {
			return wrong
		}
		if err != nil && missing == "" {
			s.compareOutput(act.Lines, output)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-deadline.C:
			return fmt.Errorf("the request was not refused with %q within %s", missing, s.handlerTimeout())
		case <-ctx.Done():
			return fmt.Errorf("waiting until something is refused: %w", context.Cause(ctx))
		}
	}
}

// split separates the expected output of kubectl from that of the operator.
func split(lines []string) (warnings, rest []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, "Warning: ") {
			warnings = append(warnings, line)
		} else {
			rest = append(rest, line)
		}
	}
	return warnings, rest
}

// unmatched returns the first expression that does not match the output, or an empty string.
func unmatched(lines []string, output string) (missing string, err error) {
	for _, line := range lines {
		found, err := regexp.MatchString(line, output)
		if err != nil || !found {
			return line, err
		}
	}
	return "", nil
}
