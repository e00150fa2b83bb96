package background_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// stop is a reason to stop, and when it comes.
type stop struct {
	at     time.Duration
	reason background.Reason
}

const (
	second = time.Second
	minute = time.Minute
)

// The handlers of these never end by themselves; an operator that pauses gives its ticks 30 seconds.
func TestStagesOfStopping(t *testing.T) {
	daemon, tick := handlers.Background{Daemon: true}, handlers.Background{Interval: time.Hour}
	slow, polled, limited := daemon, daemon, daemon
	slow.CancelBackoff, polled.CancelPolling = minute, 20*second
	limited.CancelBackoff, limited.CancelTimeout = 10*second, 5*second
	for name, tc := range map[string]struct {
		reason     string
		background handlers.Background
		settings   background.Settings
		stops      []stop
		want       []string
	}{
		"Daemon": {
			"its object waits for it, and that is said each minute", daemon, background.Settings{},
			[]stop{{second, background.Unmatched}},
			[]string{
				"1s asked FILTERS_MISMATCH", "1.01s cancelled FILTERS_MISMATCH,DAEMON_CANCELLED",
				"1m1.01s reminded", "2m1.01s reminded",
			},
		},
		"PolledDaemon": {
			"a daemon's own interval counts more than the operator's", polled,
			with(settings.Settings{CancelPolling: 50 * second}), []stop{{minute, background.Deleted}},
			[]string{
				"1m0s asked RESOURCE_DELETED", "1m0.01s cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"1m20.01s reminded", "1m40.01s reminded", "2m0.01s reminded", "2m20.01s reminded",
			},
		},
		"PollingOperator": {
			"the interval is that of the settings", daemon, with(settings.Settings{CancelPolling: 50 * second}),
			[]stop{{minute, background.Deleted}},
			[]string{
				"1m0s asked RESOURCE_DELETED", "1m0.01s cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"1m50.01s reminded",
			},
		},
		"LimitedDaemon": {
			"it has its backoff, then its timeout, and then nobody waits for it", limited, background.Settings{},
			[]stop{{second, background.Unmatched}},
			[]string{
				"1s asked FILTERS_MISMATCH", "11s cancelled FILTERS_MISMATCH,DAEMON_SIGNALLED,DAEMON_CANCELLED",
				"16s abandoned", "16s look",
			},
		},
		"ExitingDaemon": {
			"an operator that exits waits for five seconds", daemon, background.Settings{},
			[]stop{{second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_EXITING", "1.01s cancelled OPERATOR_EXITING,DAEMON_CANCELLED", "6.01s abandoned",
			},
		},
		"PausedDaemon": {
			"only ticks may go on in a pause", daemon, background.Settings{}, []stop{{second, background.Pausing}},
			[]string{
				"1s asked OPERATOR_PAUSING", "1.01s cancelled OPERATOR_PAUSING,DAEMON_CANCELLED", "6.01s abandoned",
			},
		},
		"Tick": {
			"it ends by itself, so its context does not", tick, background.Settings{},
			[]stop{{second, background.Unmatched}},
			[]string{"1s asked FILTERS_MISMATCH", "1m1.01s reminded", "2m1.01s reminded"},
		},
		"ExitingTick": {
			"nothing waits for the end of a tick then", tick, background.Settings{},
			[]stop{{second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_EXITING", "1.01s cancelled OPERATOR_EXITING,DAEMON_CANCELLED", "6.01s abandoned",
			},
		},
		"PausedTick": {
			"it may go on for the time of the settings", tick, background.Settings{},
			[]stop{{second, background.Pausing}},
			[]string{
				"1s asked OPERATOR_PAUSING", "31s cancelled OPERATOR_PAUSING,DAEMON_CANCELLED", "36s abandoned",
			},
		},
		"PausedTickExits": {
			"the pause is over", tick, background.Settings{},
			[]stop{{second, background.Pausing}, {11 * second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_PAUSING", "11s cancelled OPERATOR_PAUSING,OPERATOR_EXITING,DAEMON_CANCELLED",
				"16s abandoned",
			},
		},
		"PausedDaemonExits": {
			"it has its own backoff, whatever comes", slow, background.Settings{},
			[]stop{{second, background.Pausing}, {11 * second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_PAUSING",
				"1m1s cancelled OPERATOR_PAUSING,OPERATOR_EXITING,DAEMON_SIGNALLED,DAEMON_CANCELLED", "1m6s abandoned",
			},
		},
		"SlowDaemonPauses": {
			"it has its own backoff here, too", slow, background.Settings{},
			[]stop{{second, background.Unmatched}, {11 * second, background.Pausing}},
			[]string{
				"1s asked FILTERS_MISMATCH",
				"1m1s cancelled FILTERS_MISMATCH,OPERATOR_PAUSING,DAEMON_SIGNALLED,DAEMON_CANCELLED", "1m6s abandoned",
			},
		},
		"TickExitsAtTheFirstWord": {
			"it is not paused, so it has the time for its own insight", tick,
			with(settings.Settings{InstantExit: 5 * second}),
			[]stop{{second, background.Unmatched}, {2 * second, background.Exiting}},
			[]string{
				"1s asked FILTERS_MISMATCH", "6s cancelled FILTERS_MISMATCH,OPERATOR_EXITING,DAEMON_CANCELLED",
				"11s abandoned",
			},
		},
		"DaemonExits": {
			"the operator does not wait without a limit, and does not say that somebody would", daemon,
			background.Settings{}, []stop{{second, background.Unmatched}, {58 * second, background.Exiting}},
			[]string{
				"1s asked FILTERS_MISMATCH", "1.01s cancelled FILTERS_MISMATCH,DAEMON_CANCELLED", "1m3s abandoned",
			},
		},
		"DaemonPauses": {
			"it waits as little when it pauses", daemon, background.Settings{},
			[]stop{{second, background.Unmatched}, {58 * second, background.Pausing}},
			[]string{
				"1s asked FILTERS_MISMATCH", "1.01s cancelled FILTERS_MISMATCH,DAEMON_CANCELLED", "1m3s abandoned",
			},
		},
		"TickPauses": {
			"it has the whole time of a pause", tick, background.Settings{},
			[]stop{{second, background.Unmatched}, {11 * second, background.Pausing}},
			[]string{
				"1s asked FILTERS_MISMATCH", "41s cancelled FILTERS_MISMATCH,OPERATOR_PAUSING,DAEMON_CANCELLED",
				"46s abandoned",
			},
		},
		"DaemonTwice": {
			"a further reason that gives no less time changes nothing", daemon, background.Settings{},
			[]stop{{second, background.Unmatched}, {11 * second, background.Deleted}},
			[]string{
				"1s asked FILTERS_MISMATCH", "1.01s cancelled FILTERS_MISMATCH,DAEMON_CANCELLED",
				"1m1.01s reminded", "2m1.01s reminded",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.settings.PauseTimeout = 30 * second
				w := newStubbornWorld(t, tc.settings, tc.background)
				for _, stop := range tc.stops {
					w.until(stop.at)
					w.stop(stop.reason)
					synctest.Wait()
				}
				w.want(150*second-time.Since(w.began), append([]string{"0s call 0"}, tc.want...)...)
			})
		})
	}
}
