package alerts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// course is a course of time series, with a value for each minute, and what an alert makes of it.
type course struct {
	reason string
	series []string
	// firesAt is when the alert must fire, with these summaries. Without any, it must never fire.
	firesAt time.Duration
	want    []string
}

// seriesLabels are the labels that all series of one operator have here.
const seriesLabels = `{instance="a",operator="dbs",kind="Database.example.org"`

const (
	calls   = `kopf_handler_attempts_total` + seriesLabels
	latency = `kopf_change_latency_seconds_bucket` + seriesLabels
)

var changes = map[string][]course{
	"KopfChangeUnhandled": {
		{
			"a change waits for an hour",
			[]string{`kopf_oldest_unhandled_change_age_seconds` + seriesLabels + `} 0+60x60`},
			21 * time.Minute, []string{"A change of a Database.example.org waits for 21m 0s in dbs."},
		},
		{
			reason: "each change is handled within ten minutes",
			series: []string{
				`kopf_oldest_unhandled_change_age_seconds` + seriesLabels + `} 0+60x10 0+60x10 0+60x10 0+60x10`,
			},
		},
	},
	"KopfChangesSlow": {
		{
			"all changes take between five and fifteen minutes", []string{
				latency + `,reason="create",le="300"} 0x60`,
				latency + `,reason="create",le="900"} 0+1x60`,
				latency + `,reason="create",le="+Inf"} 0+1x60`,
			},
			50 * time.Minute, []string{"Of the changes of Database.example.org, 5 % take longer than 14m 29s."},
		},
		{
			reason: "all take less than five minutes, or there are none", series: []string{
				latency + `,reason="create",le="300"} 0+1x60 60x60`,
				latency + `,reason="create",le="900"} 0+1x60 60x60`,
				latency + `,reason="create",le="+Inf"} 0+1x60 60x60`,
			},
		},
	},
	"KopfHandlerFailed": {
		{
			"the first failure in a process", []string{
				calls + `,handler="provision",reason="create",outcome="failure"} 0x20 1x40`,
				calls + `,handler="provision",reason="create",outcome="success"} 5x60`,
			},
			21 * time.Minute, []string{"Handler provision of Database.example.org has failed permanently in dbs."},
		},
		{
			"a failure after a restart", []string{
				calls + `,handler="provision",reason="create",outcome="failure"} 7x10 _x5 0x10 1x10`,
			},
			28 * time.Minute, []string{"Handler provision of Database.example.org has failed permanently in dbs."},
		},
		{
			reason: "requests of users are denied, and a handler is repeated", series: []string{
				calls + `,handler="size",reason="CREATE",outcome="denied"} 0x20 1+1x40`,
				calls + `,handler="size",reason="CREATE",outcome="failure"} 0x60`,
				calls + `,handler="provision",reason="create",outcome="retry"} 0+1x60`,
			},
		},
		{
			reason: "a process begins, and nothing fails", series: []string{
				calls + `,handler="provision",reason="create",outcome="failure"} _x5 0x60`,
			},
		},
	},
	"KopfObjectsFailed": {
		{
			"two objects stay failed, and a waiting replica does not count them", []string{
				`kopf_objects_failed` + seriesLabels + `} 0x10 2x90`,
				`kopf_objects_failed{instance="b",operator="dbs",kind="Database.example.org"} 0x100`,
			},
			75 * time.Minute, []string{"2 objects of Database.example.org stay failed in dbs."},
		},
		{
			reason: "the object is edited within the hour",
			series: []string{`kopf_objects_failed` + seriesLabels + `} 0x10 1x40 0x60`},
		},
	},
	"KopfHandlerRetries": {
		{
			"two of three calls are repeated for an hour", []string{
				calls + `,handler="provision",reason="create",outcome="retry"} 0+2x90`,
				calls + `,handler="provision",reason="create",outcome="success"} 0+1x90`,
				`kopf_retries_waiting` + seriesLabels + `,handler="provision"} 3x90`,
			},
			40 * time.Minute, []string{"Most calls of provision of Database.example.org have to be repeated."},
		},
		{
			reason: "some calls are repeated, most are not", series: []string{
				calls + `,handler="provision",reason="create",outcome="retry"} 0+1x90`,
				calls + `,handler="provision",reason="create",outcome="success"} 0+2x90`,
				`kopf_retries_waiting` + seriesLabels + `,handler="provision"} 3x90`,
			},
		},
	},
}

var processes = map[string][]course{
	"KopfWatchSilent": {
		{
			"nothing comes for ten minutes", []string{`kopf_watch_age_seconds` + seriesLabels + `} 0+60x10`},
			6 * time.Minute, []string{"The watch of Database.example.org has been silent for 6m 0s in dbs."},
		},
		{
			reason: "bookmarks come every two minutes",
			series: []string{`kopf_watch_age_seconds` + seriesLabels + `} 0 60 120 0 60 120 0 60 120 0 60 120`},
		},
	},
	"KopfAllPaused": {
		{
			"both processes are paused", []string{
				`kopf_paused{instance="a",operator="dbs"} 1x90`, `kopf_paused{instance="b",operator="dbs"} 1x90`,
			},
			61 * time.Minute, []string{"All processes of dbs are paused."},
		},
		{
			reason: "a running process prevents the alert", series: []string{
				`kopf_paused{instance="a",operator="dbs"} 1x90`, `kopf_paused{instance="b",operator="dbs"} 0x90`,
			},
		},
	},
	"KopfRangesUnowned": {
		{
			"a range has no owner", []string{
				`kopf_oldest_unowned_range_age_seconds{instance="a",operator="dbs"} 0 0 30 90 150`,
			},
			3 * time.Minute, []string{"No replica of dbs has held a range of objects for 1m 30s."},
		},
		{
			reason: "another replica takes the ranges of a dead one", series: []string{
				`kopf_oldest_unowned_range_age_seconds{instance="a",operator="dbs"} 0 15 0 18 0`,
			},
		},
	},
	"KopfWorkersOccupied": {
		{
			"objects wait for a quarter of an hour", []string{`kopf_workqueue_depth` + seriesLabels + `} 0x5 3x15`},
			17 * time.Minute, []string{"Objects of Database.example.org have waited for workers of dbs all the time."},
		},
		{
			reason: "a process begins with a backlog", series: []string{
				`kopf_workqueue_depth` + seriesLabels + `} _x40 500 200 50 0x100`,
			},
		},
	},
	"KopfBackgroundStuck": {
		{
			"a daemon and a timer do not end", []string{
				`kopf_daemons` + seriesLabels + `,handler="watch",state="stopping"} 1x30`,
				`kopf_timers` + seriesLabels + `,handler="backup",state="stopping"} 1x30`,
			},
			20 * time.Minute, []string{
				"Handler backup of Database.example.org was asked to stop, and does not end.",
				"Handler watch of Database.example.org was asked to stop, and does not end.",
			},
		},
		{
			reason: "they run, and end within five minutes", series: []string{
				`kopf_daemons` + seriesLabels + `,handler="watch",state="running"} 1x60`,
				`kopf_daemons` + seriesLabels + `,handler="watch",state="stopping"} 0x10 1x5 0x45`,
			},
		},
	},
	"KopfEventsDropped": {
		{
			"events are dropped", []string{`kopf_events_dropped_total` + seriesLabels + `} 0x10 4x10`},
			11 * time.Minute, []string{"Handlers of raw events of Database.example.org have missed 4 of them."},
		},
		{
			reason: "some were dropped an hour ago",
			series: []string{`kopf_events_dropped_total` + seriesLabels + `} 4x60`},
		},
	},
	"KopfRequestsFail": {
		{
			"every second request has no answer", []string{
				`kopf_api_requests_total{instance="a",operator="dbs",verb="patch",code="error"} 0+6x40`,
				`kopf_api_requests_total{instance="a",operator="dbs",verb="patch",code="2xx"} 0+6x40`,
			},
			30 * time.Minute, []string{"The API server has no answer to 50% of the requests of dbs."},
		},
		{
			reason: "a conflict counts as an answer of the API server", series: []string{
				`kopf_api_requests_total{instance="a",operator="dbs",verb="patch",code="4xx"} 0+6x40`,
				`kopf_api_requests_total{instance="a",operator="dbs",verb="patch",code="2xx"} 0+6x40`,
			},
		},
	},
	"KopfChildrenFought": {
		{
			"a child is repaired every minute",
			[]string{`kopf_children_repaired_total` + seriesLabels + `,child="Secret"} 0+1x60`},
			40 * time.Minute,
			[]string{"Each Secret that is repaired for a Database.example.org is changed again by another client."},
		},
		{
			reason: "a single repair of ten children raises no alert",
			series: []string{`kopf_children_repaired_total` + seriesLabels + `,child="Secret"} 0x9 10x60`},
		},
	},
}

// Every alert has a course in which it fires, and one in which it stays silent.
func TestAlerts(t *testing.T) {
	tested := map[string]bool{}
	for _, rule := range loadAlerts(t) {
		tested[rule.Alert] = true
		courses := slices.Concat(changes[rule.Alert], processes[rule.Alert])
		fires := func(c course) bool { return len(c.want) > 0 }
		if n := len(slices.DeleteFunc(slices.Clone(courses), fires)); n == 0 || n == len(courses) {
			t.Errorf("%s: there must be a course in which it fires, and one in which it does not", rule.Alert)
		}
		for _, c := range courses {
			all, lasts := parseSeries(t, c.series)
			fired := firing(t, rule, all, lasts)
			if len(c.want) == 0 && len(fired) > 0 {
				t.Errorf("%s: %s: it fires: %v", rule.Alert, c.reason, fired)
			}
			if got := fired[c.firesAt]; len(c.want) > 0 {
				slices.Sort(got)
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%s: %s: after %s, -want, +got:\n%s", rule.Alert, c.reason, c.firesAt, d)
				}
			}
		}
	}
	for _, table := range []map[string][]course{changes, processes} {
		for name := range table {
			if !tested[name] {
				t.Errorf("there is no alert %s", name)
			}
		}
	}
}
