package alerts_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/util/annotations"
)

// interval is the time between two samples of a series, and between two evaluations.
const interval = time.Minute

// loadAlerts reads the rules that users take, as Prometheus does.
func loadAlerts(t *testing.T) (alerts []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../../../config/monitoring/alerts.yaml", false, model.UTF8Validation)
	for _, err := range errs {
		t.Error(err)
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" || rule.KeepFiringFor != 0 {
				t.Fatalf("%s%s: these tests know neither recording rules nor keep_firing_for", rule.Record, rule.Alert)
			}
			alerts = append(alerts, rule)
		}
	}
	return alerts
}

// series are time series in memory.
type series []storage.Series

// parseSeries reads lines such as `up{job="a"} 0x5 1 _x3`, as unit tests of rules have them, and gives their duration.
func parseSeries(t *testing.T, lines []string) (all series, lasts time.Duration) {
	t.Helper()
	for _, line := range lines {
		names, values, err := parser.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var points []promql.FPoint
		for i, one := range values {
			if !one.Omitted {
				points = append(points, promql.FPoint{T: int64(i) * interval.Milliseconds(), F: one.Value})
			}
		}
		lasts = max(lasts, time.Duration(len(values)-1)*interval)
		all = append(all, promql.NewStorageSeries(promql.Series{Metric: names, Floats: points}))
	}
	return all, lasts
}

// Querier gives what selects series.
func (s series) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(
		_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher,
	) storage.SeriesSet {
		var found series
		for _, one := range s {
			differs := func(m *labels.Matcher) bool { return !m.Matches(one.Labels().Get(m.Name)) }
			if !slices.ContainsFunc(matchers, differs) {
				found = append(found, one)
			}
		}
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
		return &selectedSeries{remaining: found}
	}}, nil
}

// selectedSeries are the series that a query gets, one after another.
type selectedSeries struct {
	remaining series
	current   storage.Series
}

// Next goes on to the next one.
func (s *selectedSeries) Next() bool {
	if len(s.remaining) == 0 {
		return false
	}
	s.current, s.remaining = s.remaining[0], s.remaining[1:]
	return true
}

// At is the one that Next has found.
func (s *selectedSeries) At() storage.Series { return s.current }

// Err is nil: nothing can fail.
func (s *selectedSeries) Err() error { return nil }

// Warnings are none.
func (s *selectedSeries) Warnings() annotations.Annotations { return nil }

// firing gives the summaries of an alert at each evaluation: of those that are not pending any more.
func firing(t *testing.T, rule rulefmt.Rule, all series, until time.Duration) map[time.Duration][]string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	active, fires := map[string]time.Duration{}, map[time.Duration][]string{}
	for now := time.Duration(0); now <= until; now += interval {
		query, err := engine.NewInstantQuery(t.Context(), all, nil, rule.Expr, time.UnixMilli(now.Milliseconds()))
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		vector, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		still := map[string]time.Duration{}
		for _, one := range vector {
			key := one.Metric.String()
			since, is := active[key]
			if !is {
				since = now
			}
			still[key] = since
			if now-since >= time.Duration(rule.For) {
				fires[now] = append(fires[now], summary(t, rule, one, now))
			}
		}
		active = still
	}
	return fires
}

// summary is the text of the alert for one of its results.
func summary(t *testing.T, rule rulefmt.Rule, of promql.Sample, now time.Duration) string {
	t.Helper()
	none := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	expander := template.NewTemplateExpander(t.Context(),
		"{{$labels := .Labels}}{{$value := .Value}}"+rule.Annotations["summary"], rule.Alert,
		template.AlertTemplateData(of.Metric.Map(), nil, "", of), model.Time(now.Milliseconds()), none, &url.URL{},
		[]string{"missingkey=error"})
	text, err := expander.Expand()
	if err != nil {
		t.Fatalf("%s: %v", rule.Alert, err)
	}
	if strings.Contains(text, "<no value>") {
		t.Errorf("%s: the summary lacks a label: %s", rule.Alert, text)
	}
	return text
}
