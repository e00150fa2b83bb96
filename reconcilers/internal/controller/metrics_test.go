package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
)

// retryLater is a temporary error with its delay.
type retryLater time.Duration

func (l retryLater) Error() string             { return "not yet" }
func (l retryLater) RetryAfter() time.Duration { return time.Duration(l) }

// enableMetrics enables the metrics of the site. The returned function reports how many changes were handled, and their
// total latency.
func (s *kindFixture) enableMetrics() (handled func() string) {
	registry := prometheus.NewRegistry()
	var err error
	if s.deps.Metrics, err = metrics.New(prefix, registry); err != nil {
		s.t.Fatal(err)
	}
	return func() string {
		families, err := registry.Gather()
		if err != nil {
			s.t.Fatal(err)
		}
		var all []string
		for _, family := range families {
			if family.GetName() != "kopf_change_latency_seconds" {
				continue
			}
			for _, one := range family.GetMetric() {
				h := one.GetHistogram()
				all = append(all, fmt.Sprintf("%d in %.0fs", h.GetSampleCount(), h.GetSampleSum()))
			}
		}
		return strings.Join(all, ", ")
	}
}

// unhandledSummary summarizes the unhandled changes of all namespaces.
func (s *kindFixture) unhandledSummary() string {
	changes, oldest, waiting := 0, time.Duration(0), 0
	for _, kept := range s.deps.Memory.AllScopes() {
		late := kept.Unhandled.CurrentUnfinished()
		changes, oldest = changes+late.Changes, max(oldest, late.OldestAge)
		for _, n := range late.WaitingByHandler {
			waiting += n
		}
	}
	return fmt.Sprintf("%d changes since %.0fs, %d waiting", changes, oldest.Seconds(), waiting)
}

// TestMeasuredChanges shows that an unfinished change is counted until it is finished, and that its latency is measured
// then.
func TestMeasuredChanges(t *testing.T) {
	const none = "0 changes since 0s, 0 waiting"
	creating := func() *handlers.Handler {
		return &handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}
	}
	twice := func() func(*handlers.Invocation) error {
		return func(c *handlers.Invocation) error {
			if c.Retry == 0 {
				return retryLater(time.Minute)
			}
			return nil
		}
	}
	for name, tc := range map[string]struct {
		reason string
		play   func(s *kindFixture, handled func() string)
	}{
		"Success": {"a change that is handled at once is measured with a latency of zero",
			func(s *kindFixture, handled func() string) {
				s.addHandler(creating(), succeed)
				s.run()
				s.create("a", "x")
				if got := handled(); got != "1 in 0s" || s.unhandledSummary() != none {
					s.t.Errorf("handled: %s; %s", got, s.unhandledSummary())
				}
				s.edit("a", "x", `{"metadata":{"labels":{"l":"1"}}}`)
				s.remove("a", "x")
				if got := handled(); got != "1 in 0s" || s.unhandledSummary() != none {
					s.t.Errorf("after changes that concern no handler: handled: %s; %s", got, s.unhandledSummary())
				}
			}},
		"Retry": {"a change with a retry is unfinished until the retry succeeds",
			func(s *kindFixture, handled func() string) {
				s.addHandler(creating(), twice())
				s.run()
				s.create("a", "x")
				if got := handled(); got != "" || s.unhandledSummary() != "1 changes since 1s, 1 waiting" {
					s.t.Errorf("before the retry: handled: %s; %s", got, s.unhandledSummary())
				}
				time.Sleep(time.Minute)
				if got := handled(); got != "1 in 60s" || s.unhandledSummary() != none {
					s.t.Errorf("after the retry: handled: %s; %s", got, s.unhandledSummary())
				}
			}},
		"Gone": {"a deleted object has no unfinished changes", func(s *kindFixture, handled func() string) {
			s.addHandler(creating(), twice())
			s.run()
			s.create("a", "x")
			s.remove("a", "x")
			if got := handled(); got != "" || s.unhandledSummary() != none {
				s.t.Errorf("handled: %s; %s", got, s.unhandledSummary())
			}
		}},
		"Refused": {"a change is unfinished until its result is written", func(s *kindFixture, handled func() string) {
			var mended atomic.Bool
			s.connection.Before = func(_ context.Context, r memapi.Request) error {
				if !mended.Load() && r.Verb == "patch" {
					return memapi.NewRefusal(http.StatusForbidden)
				}
				return nil
			}
			s.addHandler(creating(), succeed)
			s.run()
			s.create("a", "x")
			if got := handled(); got != "" || s.unhandledSummary() != "1 changes since 1s, 0 waiting" {
				s.t.Errorf("while writes are refused: handled: %s; %s", got, s.unhandledSummary())
			}
			mended.Store(true)
			time.Sleep(time.Hour)
			if got := handled(); !strings.HasPrefix(got, "1 in ") || s.unhandledSummary() != none {
				s.t.Errorf("after the writes succeed: handled: %s; %s", got, s.unhandledSummary())
			}
		}},
		"EventsOnly": {"raw events are not counted as changes", func(s *kindFixture, handled func() string) {
			s.addHandler(&handlers.Handler{ID: "e", Family: handlers.Watching}, succeed)
			s.run()
			s.create("a", "x")
			if got := handled(); got != "" || s.unhandledSummary() != none {
				s.t.Errorf("handled: %s; %s", got, s.unhandledSummary())
			}
		}},
		"Unmeasured": {"without metrics nothing is recorded", func(s *kindFixture, _ func() string) {
			s.deps.Metrics = nil
			s.addHandler(creating(), twice())
			s.run()
			s.create("a", "x")
			if s.unhandledSummary() != none {
				s.t.Errorf("recorded without metrics: %s", s.unhandledSummary())
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newKindFixture(t)
				tc.play(s, s.enableMetrics())
				explain(t, tc.reason)
			})
		})
	}
}
