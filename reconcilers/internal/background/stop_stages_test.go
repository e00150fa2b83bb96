package background_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// stop is a reason to stop, with its time.
type stop struct {
	at     time.Duration
	reason background.StopReason
}

const (
	second = time.Second
	minute = time.Minute
)

// TestStagesOfStopping shows the stages of handlers that never end by themselves. A pause gives ticks 30 seconds.
func TestStagesOfStopping(t *testing.T) {
	daemon, tick := handlers.BackgroundOptions{Daemon: true}, handlers.BackgroundOptions{Interval: time.Hour}
	slow, polled, limited := daemon, daemon, daemon
	slow.CancelBackoff, polled.CancelPolling = minute, 20*second
	limited.CancelBackoff, limited.CancelTimeout = 10*second, 5*second
	for name, tc := range map[string]struct {
		reason     string
		background handlers.BackgroundOptions
		settings   background.KindSettings
		stops      []stop
		want       []string
	}{
		"Daemon": {
			"a daemon without a timeout is waited for, with a reminder each minute", daemon,
			background.KindSettings{},
			[]stop{{second, background.Unmatched}},
			[]string{
				"1s asked FILTERS_MISMATCH", "1.01s cancelled FILTERS_MISMATCH,DAEMON_CANCELLED",
				"1m1.01s reminded", "2m1.01s reminded",
			},
		},
		"PolledDaemon": {
			"the polling interval of the daemon counts more than that of the operator", polled,
			with(kind.Settings{CancelPolling: 50 * second}), []stop{{minute, background.Deleted}},
			[]string{
				"1m0s asked RESOURCE_DELETED", "1m0.01s cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"1m20.01s reminded", "1m40.01s reminded", "2m0.01s reminded", "2m20.01s reminded",
			},
		},
		"PollingOperator": {
			"the polling interval of the settings is the default", daemon,
			with(kind.Settings{CancelPolling: 50 * second}),
			[]stop{{minute, background.Deleted}},
			[]string{
				"1m0s asked RESOURCE_DELETED", "1m0.01s cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"1m50.01s reminded",
			},
		},
		"LimitedDaemon": {
			"a daemon has its backoff, then its timeout, and is abandoned afterwards", limited,
			background.KindSettings{},
			[]stop{{second, background.Unmatched}},
			[]string{
				"1s asked FILTERS_MISMATCH", "11s cancelled FILTERS_MISMATCH,DAEMON_SIGNALLED,DAEMON_CANCELLED",
				"16s abandoned", "16s look",
			},
		},
		"ExitingDaemon": {
			"an exit abandons a cancelled daemon after five seconds", daemon, background.KindSettings{},
			[]stop{{second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_EXITING", "1.01s cancelled OPERATOR_EXITING,DAEMON_CANCELLED", "6.01s abandoned",
			},
		},
		"PausedDaemon": {
			"a pause abandons a cancelled daemon after five seconds", daemon, background.KindSettings{},
			[]stop{{second, background.Pausing}},
			[]string{
				"1s asked OPERATOR_PAUSING", "1.01s cancelled OPERATOR_PAUSING,DAEMON_CANCELLED", "6.01s abandoned",
			},
		},
		"Tick": {
			"the context of a running tick is not cancelled", tick, background.KindSettings{},
			[]stop{{second, background.Unmatched}},
			[]string{"1s asked FILTERS_MISMATCH", "1m1.01s reminded", "2m1.01s reminded"},
		},
		"ExitingTick": {
			"an exit cancels a running tick and abandons it after five seconds", tick, background.KindSettings{},
			[]stop{{second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_EXITING", "1.01s cancelled OPERATOR_EXITING,DAEMON_CANCELLED", "6.01s abandoned",
			},
		},
		"PausedTick": {
			"a running tick may go on for the pause timeout", tick, background.KindSettings{},
			[]stop{{second, background.Pausing}},
			[]string{
				"1s asked OPERATOR_PAUSING", "31s cancelled OPERATOR_PAUSING,DAEMON_CANCELLED", "36s abandoned",
			},
		},
		"PausedTickExits": {
			"an exit during a pause ends the pause timeout of a tick", tick, background.KindSettings{},
			[]stop{{second, background.Pausing}, {11 * second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_PAUSING", "11s cancelled OPERATOR_PAUSING,OPERATOR_EXITING,DAEMON_CANCELLED",
				"16s abandoned",
			},
		},
		"PausedDaemonExits": {
			"a daemon keeps its own backoff if an exit follows a pause", slow, background.KindSettings{},
			[]stop{{second, background.Pausing}, {11 * second, background.Exiting}},
			[]string{
				"1s asked OPERATOR_PAUSING",
				"1m1s cancelled OPERATOR_PAUSING,OPERATOR_EXITING,DAEMON_SIGNALLED,DAEMON_CANCELLED", "1m6s abandoned",
			},
		},
		"SlowDaemonPauses": {
			"a daemon keeps its own backoff if a pause follows another reason", slow, background.KindSettings{},
			[]stop{{second, background.Unmatched}, {11 * second, background.Pausing}},
			[]string{
				"1s asked FILTERS_MISMATCH",
				"1m1s cancelled FILTERS_MISMATCH,OPERATOR_PAUSING,DAEMON_SIGNALLED,DAEMON_CANCELLED", "1m6s abandoned",
			},
		},
		"TickExitsAtTheFirstWord": {
			"a stopped tick has the instant exit before an exit cancels it", tick,
			with(kind.Settings{InstantExit: 5 * second}),
			[]stop{{second, background.Unmatched}, {2 * second, background.Exiting}},
			[]string{
				"1s asked FILTERS_MISMATCH", "6s cancelled FILTERS_MISMATCH,OPERATOR_EXITING,DAEMON_CANCELLED",
				"11s abandoned",
			},
		},
		"DaemonExits": {
			"an exit abandons a cancelled daemon without a timeout, and without a reminder", daemon,
			background.KindSettings{}, []stop{{second, background.Unmatched}, {58 * second, background.Exiting}},
			[]string{
				"1s asked FILTERS_MISMATCH", "1.01s cancelled FILTERS_MISMATCH,DAEMON_CANCELLED", "1m3s abandoned",
			},
		},
		"DaemonPauses": {
			"a pause abandons a cancelled daemon without a timeout, and without a reminder", daemon,
			background.KindSettings{},
			[]stop{{second, background.Unmatched}, {58 * second, background.Pausing}},
			[]string{
				"1s asked FILTERS_MISMATCH", "1.01s cancelled FILTERS_MISMATCH,DAEMON_CANCELLED", "1m3s abandoned",
			},
		},
		"TickPauses": {
			"a stopped tick has the whole pause timeout", tick, background.KindSettings{},
			[]stop{{second, background.Unmatched}, {11 * second, background.Pausing}},
			[]string{
				"1s asked FILTERS_MISMATCH", "41s cancelled FILTERS_MISMATCH,OPERATOR_PAUSING,DAEMON_CANCELLED",
				"46s abandoned",
			},
		},
		"DaemonTwice": {
			"a second reason without a shorter time changes nothing", daemon, background.KindSettings{},
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
				w := newStubbornHarness(t, tc.settings, tc.background)
				for _, stop := range tc.stops {
					w.until(stop.at)
					w.stop(stop.reason)
					synctest.Wait()
				}
				w.want(150*second-time.Since(w.startTime), append([]string{"0s call 0"}, tc.want...)...)
			})
		})
	}
}
