package kopf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// durationSetting is one that is a duration: where it is, its default, and the named duration that it takes, if any.
type durationSetting struct {
	name     string
	value    *time.Duration
	fallback time.Duration
	takes    time.Duration
}

func (s *Settings) durations() []durationSetting {
	return []durationSetting{
		{"UltimateExitingTimeout", &s.UltimateExitingTimeout, serving.DefaultExitLimit, Never},
		{"CleanupTimeout", &s.CleanupTimeout, defaultCleanup, Never},
		{"Execution.DefaultBackoff", &s.Execution.DefaultBackoff, execution.DefaultBackoff, Immediately},
		{"Execution.Checkpoint", &s.Execution.Checkpoint, settings.DefaultCheckpoint, 0},
		{"Background.CancellationPolling", &s.Background.CancellationPolling, settings.DefaultPolling, Never},
		{"Background.InstantExitTimeout", &s.Background.InstantExitTimeout, settings.DefaultInstantExit, 0},
		{"Peering.Lifetime", &s.Peering.Lifetime, peering.DefaultLifetime, 0},
		{"Peering.ClockSkew", &s.Peering.ClockSkew, peering.DefaultSkew, Immediately},
		{"Peering.TakeOverWait", &s.Peering.TakeOverWait, defaultTakeOverWait, Immediately},
		{"Peering.PauseTimeout", &s.Peering.PauseTimeout, settings.DefaultPauseTimeout, Immediately},
		{"Watching.ServerTimeout", &s.Watching.ServerTimeout, 0, Never},
		{"Watching.ClientTimeout", &s.Watching.ClientTimeout, 0, Never},
		{"Watching.ReconnectBackoff", &s.Watching.ReconnectBackoff, reconcilers.DefaultReconnectBackoff, Immediately},
		{"Watching.InactivityTimeout", &s.Watching.InactivityTimeout, reconcilers.DefaultInactivityTimeout, Never},
		{"Queueing.ExitTimeout", &s.Queueing.ExitTimeout, settings.DefaultExitTimeout, Immediately},
		{"Queueing.StuckTimeout", &s.Queueing.StuckTimeout, reconcilers.DefaultStuckTimeout, Never},
		{"Networking.RequestTimeout", &s.Networking.RequestTimeout, 0, Never},
		{"Networking.ConnectTimeout", &s.Networking.ConnectTimeout, connection.DefaultConnect, Never},
		{"Watching.ConnectTimeout", &s.Watching.ConnectTimeout, 0, Never},
	}
}

// resolveDurations fills in the defaults of durations, and checks what is given.
func (s *Settings) resolveDurations() (problems []error) {
	for _, d := range s.durations() {
		if *d.value == 0 {
			*d.value = d.fallback
			continue
		}
		if err := d.check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", d.name, err))
		}
	}
	return problems
}

func (d durationSetting) check() error {
	value := *d.value
	switch {
	case value == d.takes:
		return nil
	case value >= 0:
		return tooShort(value)
	}
	right := "it must be positive, or zero for the default"
	if d.fallback != 0 {
		right += " of " + d.fallback.String()
	}
	if d.takes != 0 {
		right += ", or " + durationName(d.takes)
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

// resolveDelays checks lists of delays, and fills in the default of the one that has one.
func (s *Settings) resolveDelays() (problems []error) {
	if s.Queueing.ErrorDelays == nil {
		s.Queueing.ErrorDelays = slices.Clone(settings.DefaultErrorDelays)
	}
	lists := map[string][]time.Duration{
		"Queueing.ErrorDelays": s.Queueing.ErrorDelays, "Networking.ErrorBackoffs": s.Networking.ErrorBackoffs,
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		for i, delay := range lists[name] {
			err := tooShort(delay)
			if delay <= 0 {
				err = fmt.Errorf(
					"%s is not positive: the API server would be asked again and again", durationName(delay),
				)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s[%d]: %w", name, i, err))
			}
		}
	}
	return problems
}

// resolveNumbers checks all other numbers, and fills in their defaults.
func (s *Settings) resolveNumbers() (problems []error) {
	for _, n := range []struct {
		name     string
		value    *int
		fallback int // 0 is no limit
	}{
		{"Queueing.WorkerLimit", &s.Queueing.WorkerLimit, settings.DefaultWorkers},
		{"Background.MaxConcurrentDaemons", &s.Background.MaxConcurrentDaemons, 0},
		{"Posting.PerSecond", &s.Posting.PerSecond, reconcilers.DefaultEventsPerSecond},
		{"Background.MaxConcurrentTicks", &s.Background.MaxConcurrentTicks, settings.DefaultTicks},
		{"JournalObjects", &s.JournalObjects, journal.DefaultObjects},
		{"JournalEntries", &s.JournalEntries, journal.DefaultEntries},
	} {
		switch {
		case *n.value < 0 && n.fallback == 0:
			problems = append(problems, fmt.Errorf(
				"%s: %d: it must be positive, or zero for no limit", n.name, *n.value,
			))
		case *n.value < 0:
			problems = append(problems, fmt.Errorf(
				"%s: %d: it must be positive, or zero for the default of %d", n.name, *n.value, n.fallback,
			))
		}
		*n.value = cmp.Or(*n.value, n.fallback)
	}
	if err := checkLifecycle(s.Execution.Lifecycle); err != nil {
		problems = append(problems, fmt.Errorf("Execution.Lifecycle: %w", err))
	}
	return problems
}

// checkLifecycle tells whether there is such a lifecycle.
func checkLifecycle(l Lifecycle) error {
	if l.own.Valid() {
		return nil
	}
	return errors.New("LifecycleFunc: the function is nil: give one, or take another lifecycle, such as kopf.ASAP")
}
