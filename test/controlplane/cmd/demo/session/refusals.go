package session

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// refused does for nothing what must be refused, until it is: an API server knows of the operator's webhooks some
// moments after they are configured.
func (s *Session) refused(ctx context.Context, act Act) error {
	deadline := time.NewTimer(s.patience())
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
			return fmt.Errorf("what must be refused was not refused with %q within %s", missing, s.patience())
		case <-ctx.Done():
			return fmt.Errorf("waiting until something is refused: %w", context.Cause(ctx))
		}
	}
}

// split separates what kubectl is to say from what the operator is to say.
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

// unmatched is the first expression that no part of the output matches; empty if there is none.
func unmatched(lines []string, output string) (missing string, err error) {
	for _, line := range lines {
		found, err := regexp.MatchString(line, output)
		if err != nil || !found {
			return line, err
		}
	}
	return "", nil
}
