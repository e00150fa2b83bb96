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

// failing returns the checks that fail, as "name: text".
func failing(checks []health.Check) (all []string) {
	for _, check := range checks {
		if err := check.Run(); err != nil {
			all = append(all, check.Name+": "+err.Error())
		}
	}
	return all
}

func want(t *testing.T, reason string, checks []health.Check, texts ...string) {
	t.Helper()
	if d := cmp.Diff(texts, failing(checks)); d != "" {
		t.Errorf("%s (-want, +got):\n%s", reason, d)
	}
}

// filled reports that no index is awaited.
func filled() []string { return nil }

func open() bool { return true }

// serving returns the health of an operator that serves the scopes.
func serving(ctx context.Context, scopes ...string) *health.Health {
	h := health.New()
	h.Reach(health.Started)
	h.Serve(ctx, open, filled)
	h.Announce(scopes, nil)
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
				h.Reach(stage)
			}
			want(t, tc.reason, h.Ready(), tc.want...)
			want(t, "alive at any stage", h.Alive())
		})
	}
}

func TestDiscovery(t *testing.T) {
	h := health.New()
	h.Reach(health.Started)
	h.Serve(t.Context(), open, filled)
	want(t, "not ready before the first answer", h.Ready(), "discovery: the API server has not answered yet")
	h.Announce(nil, []string{"pods", "nodes"})
	want(t, "unanswered resources are listed",
		h.Ready(), "discovery: the API server has not answered yet for: pods, nodes")
	h.Announce(nil, nil)
	want(t, "ready if there is nothing to serve", h.Ready())
}

// TestPauses shows that resources are listed again after a pause, while the served resources are known from before.
func TestPauses(t *testing.T) {
	paused := false
	h := health.New()
	h.Reach(health.Started)
	h.Serve(t.Context(), func() bool { return !paused }, filled)
	h.Announce([]string{"a"}, nil)
	h.Scope("a").Synced()
	want(t, "ready after the list", h.Ready())
	paused = true
	h.Scope("a").End()
	h.Announce([]string{"a"}, []string{"nodes"})
	want(t, "ready during the pause", h.Ready())
	ctx, stop := context.WithCancel(t.Context())
	if stop(); h.AtWork(ctx) {
		t.Error("AtWork is true during the pause")
	}
	h.Announce([]string{"a"}, nil)
	paused = false
	want(t, "not ready after the pause until the next list", h.Ready(), "caches: a: not listed yet")
	h.Scope("a").Begin()
	h.Scope("a").Synced()
	want(t, "ready after the next list", h.Ready())
}

func TestIndices(t *testing.T) {
	waiting := []string{"pods", "nodes"}
	h := health.New()
	h.Reach(health.Started)
	h.Serve(t.Context(), open, func() []string { return waiting })
	h.Announce(nil, nil)
	want(t, "not ready until the indexed resources are listed", h.Ready(),
		"indices: handlers wait until the indexed resources are listed: pods, nodes")
	waiting = nil
	want(t, "ready with filled indices", h.Ready())
}

func TestCaches(t *testing.T) {
	h := serving(t.Context(), "b", "a", "c")
	want(t, "all scopes without a list are reported in their order", h.Ready(),
		"caches: a: not listed yet\nb: not listed yet\nc: not listed yet")
	h.Scope("a").Synced()
	h.Scope("b").Failed(errors.New("forbidden"))
	h.Scope("c").Refuse()
	want(t, "the error of a scope is reported, a refused scope is not",
		h.Ready(), "caches: b: not listed yet: forbidden")
	h.Announce([]string{"a"}, nil)
	want(t, "a scope that is not announced any more is not reported", h.Ready())
	h.Scope("b").Failed(errors.New("too late")) // not announced any more
	h.Announce([]string{"a", "b"}, nil)
	want(t, "a scope that is announced later starts without a list", h.Ready(), "caches: b: not listed yet")
	h.Scope("b").Synced()
	want(t, "a scope that is announced again keeps its state", h.Ready())
	h.Scope("a").Begin()
	want(t, "a scope whose controller starts again has no list", h.Ready(), "caches: a: not listed yet")
}

// TestPause shows that a paused operator is ready.
func TestPause(t *testing.T) {
	ctx, pause := context.WithCancel(t.Context())
	h := serving(ctx, "a")
	want(t, "not ready before the list", h.Ready(), "caches: a: not listed yet")
	pause()
	want(t, "ready during the pause", h.Ready())
}

func TestWorkers(t *testing.T) {
	stuck := func(kind string, since time.Duration) *health.Workers {
		return &health.Workers{Kind: kind, Stuck: func(limit time.Duration) []string {
			if since < limit {
				return nil
			}
			return []string{"one", "two"}
		}}
	}
	h := health.New()
	dismiss := h.Employ(stuck("Pod", time.Hour))
	h.Employ(stuck("Node", time.Hour))
	h.Employ(stuck("Secret", minute))
	const nodes, pods = "Node: one; two", "Pod: one; two"
	want(t, "the default limit is ten minutes", h.Alive(), "workers: "+nodes+"\n"+pods)
	dismiss()
	want(t, "ended workers are not stuck", h.Alive(), "workers: "+nodes)
	h.Limit(health.Limits{Stuck: 2 * time.Hour})
	want(t, "the limit is a setting", h.Alive())
	h.Limit(health.Limits{Stuck: -1})
	want(t, "a negative limit disables the check", h.Alive())
}

// TestNobody shows that a nil Health accepts all reports, as in tests of single parts.
func TestNobody(t *testing.T) {
	var h *health.Health
	h.Reach(health.Started)
	h.Serve(t.Context(), open, filled)
	h.Announce([]string{"a"}, nil)
	h.Employ(&health.Workers{})()
	s := h.Scope("a")
	s.Begin()
	s.Refuse()
	s.Synced()
	s.Failed(io.EOF)
	request(t, h, "a", "watch=true", answering{code: http.StatusOK})()
	if _, runs := s.Silence(); runs {
		t.Error("a scope of a nil Health is watched")
	}
}

// TestAtWork shows that AtWork waits exactly until everything is listed, as the smoke test of a deployment needs it.
func TestAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serving(t.Context(), "a")
		go func() {
			time.Sleep(minute)
			h.Scope("a").Synced()
		}()
		began := time.Now()
		if at := h.AtWork(t.Context()); !at || time.Since(began) < minute || time.Since(began) > minute+time.Second {
			t.Errorf("got %v after %v, want it as soon as all is listed", at, time.Since(began))
		}
	})
}
