package health_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
)

const minute = time.Minute

// failingChecks returns the checks that fail, as "name: text".
func failingChecks(checks []health.Check) (all []string) {
	for _, check := range checks {
		if err := check.Run(); err != nil {
			all = append(all, check.Name+": "+err.Error())
		}
	}
	return all
}

func requireFailures(t *testing.T, reason string, checks []health.Check, texts ...string) {
	t.Helper()
	if d := cmp.Diff(texts, failingChecks(checks)); d != "" {
		t.Errorf("%s (-want, +got):\n%s", reason, d)
	}
}

// noUnfilledIndices reports that no index is awaited.
func noUnfilledIndices() []string { return nil }

func alwaysOpen() bool { return true }

// newServingHealth returns the health of an operator that serves the scopes.
func newServingHealth(ctx context.Context, scopes ...string) *health.Health {
	h := health.New()
	h.ReachStage(health.Started)
	h.ReportServing(ctx, alwaysOpen, noUnfilledIndices)
	h.AnnounceScopes(scopes, nil)
	return h
}

func TestStages(t *testing.T) {
	tests := map[string]struct {
		reason string
		stages []health.Stage
		want   []string
	}{
		"None": {"an operator that was not started is not ready",
			nil, []string{"startup: the operator is not started yet"}},
		"Standby": {"an operator on standby is ready", []health.Stage{health.StandingBy}, nil},
		"Starting": {"an operator with running startup handlers is not ready",
			[]health.Stage{health.StandingBy, health.Starting},
			[]string{"startup: the startup handlers have not succeeded yet"}},
		"Late": {"a late report of the standby is ignored",
			[]health.Stage{health.Starting, health.StandingBy},
			[]string{"startup: the startup handlers have not succeeded yet"}},
		"Started": {"a started operator is ready", []health.Stage{health.Starting, health.Started}, nil},
		"Again":   {"a stage never goes back", []health.Stage{health.Started, health.Waiting}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := health.New()
			for _, stage := range tc.stages {
				h.ReachStage(stage)
			}
			requireFailures(t, tc.reason, h.ReadyChecks(), tc.want...)
			requireFailures(t, "alive at any stage", h.AliveChecks())
		})
	}
}

func TestDiscovery(t *testing.T) {
	h := health.New()
	h.ReachStage(health.Started)
	h.ReportServing(t.Context(), alwaysOpen, noUnfilledIndices)
	requireFailures(t, "not ready before the first answer", h.ReadyChecks(),
		"discovery: the API server has not answered yet")
	h.AnnounceScopes(nil, []string{"pods", "nodes"})
	requireFailures(t, "unanswered resources are listed",
		h.ReadyChecks(), "discovery: the API server has not answered yet for: pods, nodes")
	h.AnnounceScopes(nil, nil)
	requireFailures(t, "ready if there is nothing to serve", h.ReadyChecks())
}

// TestPauses shows that resources are listed again after a pause, while the served resources are known from before.
func TestPauses(t *testing.T) {
	paused := false
	h := health.New()
	h.ReachStage(health.Started)
	h.ReportServing(t.Context(), func() bool { return !paused }, noUnfilledIndices)
	h.AnnounceScopes([]string{"a"}, nil)
	h.Scope("a").ReportSynced()
	requireFailures(t, "ready after the list", h.ReadyChecks())
	paused = true
	h.Scope("a").ReportEnd()
	h.AnnounceScopes([]string{"a"}, []string{"nodes"})
	requireFailures(t, "ready during the pause", h.ReadyChecks())
	ctx, stop := context.WithCancel(t.Context())
	if stop(); h.WaitUntilReady(ctx) {
		t.Error("AtWork is true during the pause")
	}
	h.AnnounceScopes([]string{"a"}, nil)
	paused = false
	requireFailures(t, "not ready after the pause until the next list", h.ReadyChecks(), "caches: a: not listed yet")
	h.Scope("a").ReportStart()
	h.Scope("a").ReportSynced()
	requireFailures(t, "ready after the next list", h.ReadyChecks())
}

func TestIndices(t *testing.T) {
	waiting := []string{"pods", "nodes"}
	h := health.New()
	h.ReachStage(health.Started)
	h.ReportServing(t.Context(), alwaysOpen, func() []string { return waiting })
	h.AnnounceScopes(nil, nil)
	requireFailures(t, "not ready until the indexed resources are listed", h.ReadyChecks(),
		"indices: handlers wait until the indexed resources are listed: pods, nodes")
	waiting = nil
	requireFailures(t, "ready with filled indices", h.ReadyChecks())
}

func TestCaches(t *testing.T) {
	h := newServingHealth(t.Context(), "b", "a", "c")
	requireFailures(t, "all scopes without a list are reported in their order", h.ReadyChecks(),
		"caches: a: not listed yet\nb: not listed yet\nc: not listed yet")
	h.Scope("a").ReportSynced()
	h.Scope("b").ReportFailure(errors.New("forbidden"))
	h.Scope("c").ReportRefused()
	requireFailures(t, "the error of a scope is reported, a refused scope is not",
		h.ReadyChecks(), "caches: b: not listed yet: forbidden")
	h.AnnounceScopes([]string{"a"}, nil)
	requireFailures(t, "a scope that is not announced any more is not reported", h.ReadyChecks())
	h.Scope("b").ReportFailure(errors.New("too late")) // not announced any more
	h.AnnounceScopes([]string{"a", "b"}, nil)
	requireFailures(t, "a scope that is announced later starts without a list", h.ReadyChecks(),
		"caches: b: not listed yet")
	h.Scope("b").ReportSynced()
	requireFailures(t, "a scope that is announced again keeps its state", h.ReadyChecks())
	h.Scope("a").ReportStart()
	requireFailures(t, "a scope whose controller starts again has no list", h.ReadyChecks(),
		"caches: a: not listed yet")
}

// TestPause shows that a paused operator is ready.
func TestPause(t *testing.T) {
	ctx, pause := context.WithCancel(t.Context())
	h := newServingHealth(ctx, "a")
	requireFailures(t, "not ready before the list", h.ReadyChecks(), "caches: a: not listed yet")
	pause()
	requireFailures(t, "ready during the pause", h.ReadyChecks())
}

func TestWorkers(t *testing.T) {
	stuck := func(kind string, since time.Duration) *health.Workers {
		return &health.Workers{Kind: kind, StuckPasses: func(limit time.Duration) []string {
			if since < limit {
				return nil
			}
			return []string{"one", "two"}
		}}
	}
	h := health.New()
	dismiss := h.AddWorkers(stuck("Pod", time.Hour))
	h.AddWorkers(stuck("Node", time.Hour))
	h.AddWorkers(stuck("Secret", minute))
	const nodes, pods = "Node: one; two", "Pod: one; two"
	requireFailures(t, "the default limit is ten minutes", h.AliveChecks(), "workers: "+nodes+"\n"+pods)
	dismiss()
	requireFailures(t, "ended workers are not stuck", h.AliveChecks(), "workers: "+nodes)
	h.SetLimits(health.CheckLimits{StuckTimeout: 2 * time.Hour})
	requireFailures(t, "the limit is a setting", h.AliveChecks())
	h.SetLimits(health.CheckLimits{StuckTimeout: -1})
	requireFailures(t, "a negative limit disables the check", h.AliveChecks())
}

// TestNilHealth shows that a nil Health accepts all reports, as in tests of single parts.
func TestNilHealth(t *testing.T) {
	var h *health.Health
	h.ReachStage(health.Started)
	h.ReportServing(t.Context(), alwaysOpen, noUnfilledIndices)
	h.AnnounceScopes([]string{"a"}, nil)
	h.AddWorkers(&health.Workers{})()
	s := h.Scope("a")
	s.ReportStart()
	s.ReportRefused()
	s.ReportSynced()
	s.ReportFailure(io.EOF)
	startRequest(t, h, "a", "watch=true", fixedResponder{code: http.StatusOK})()
	if _, runs := s.SilentFor(); runs {
		t.Error("a scope of a nil Health is watched")
	}
}

// TestAtWork shows that AtWork waits exactly until everything is listed, as the smoke test of a deployment needs it.
func TestAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServingHealth(t.Context(), "a")
		go func() {
			time.Sleep(minute)
			h.Scope("a").ReportSynced()
		}()
		began := time.Now()
		if at := h.WaitUntilReady(t.Context()); !at || time.Since(began) < minute ||
			time.Since(began) > minute+time.Second {
			t.Errorf("got %v after %v, want it as soon as all is listed", at, time.Since(began))
		}
	})
}
