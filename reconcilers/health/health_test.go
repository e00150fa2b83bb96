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

// failing are the checks that fail, as "name: text".
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

// filled has no index that is waited for.
func filled() []string { return nil }

func open() bool { return true }

// serving is an operator that serves the scopes.
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
		"None":    {"the manager has not come to it", nil, []string{"startup: the operator is not started yet"}},
		"Standby": {"another process is at work", []health.Stage{health.StandingBy}, nil},
		"Starting": {"its handlers wait",
			[]health.Stage{health.StandingBy, health.Starting},
			[]string{"startup: the startup handlers have not succeeded yet"}},
		"Late": {"the word that it stands by comes too late",
			[]health.Stage{health.Starting, health.StandingBy},
			[]string{"startup: the startup handlers have not succeeded yet"}},
		"Started": {"it has begun", []health.Stage{health.Starting, health.Started}, nil},
		"Again":   {"it never goes back", []health.Stage{health.Started, health.Waiting}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := health.New()
			for _, stage := range tc.stages {
				h.Reach(stage)
			}
			want(t, tc.reason, h.Ready(), tc.want...)
			want(t, "no restart helps", h.Alive())
		})
	}
}

func TestDiscovery(t *testing.T) {
	h := health.New()
	h.Reach(health.Started)
	h.Serve(t.Context(), open, filled)
	want(t, "nothing is known", h.Ready(), "discovery: the API server has not answered yet")
	h.Announce(nil, []string{"pods", "nodes"})
	want(t, "they are named", h.Ready(), "discovery: the API server has not answered yet for: pods, nodes")
	h.Announce(nil, nil)
	want(t, "there is nothing to be served", h.Ready())
}

// What a pause has ended is listed anew after it; what is served is known from before.
func TestPauses(t *testing.T) {
	paused := false
	h := health.New()
	h.Reach(health.Started)
	h.Serve(t.Context(), func() bool { return !paused }, filled)
	h.Announce([]string{"a"}, nil)
	h.Scope("a").Synced()
	want(t, "it is at work", h.Ready())
	paused = true
	h.Scope("a").End()
	h.Announce([]string{"a"}, []string{"nodes"})
	want(t, "it should do nothing", h.Ready())
	ctx, stop := context.WithCancel(t.Context())
	if stop(); h.AtWork(ctx) {
		t.Error("it is not at work")
	}
	h.Announce([]string{"a"}, nil)
	paused = false
	want(t, "it goes on", h.Ready(), "caches: a: not listed yet")
	h.Scope("a").Begin()
	h.Scope("a").Synced()
	want(t, "it has listed all", h.Ready())
}

func TestIndices(t *testing.T) {
	waiting := []string{"pods", "nodes"}
	h := health.New()
	h.Reach(health.Started)
	h.Serve(t.Context(), open, func() []string { return waiting })
	h.Announce(nil, nil)
	want(t, "handlers wait", h.Ready(),
		"indices: handlers wait until the indexed resources are listed: pods, nodes")
	waiting = nil
	want(t, "they are filled", h.Ready())
}

func TestCaches(t *testing.T) {
	h := serving(t.Context(), "b", "a", "c")
	want(t, "all of them are told, in their order", h.Ready(),
		"caches: a: not listed yet\nb: not listed yet\nc: not listed yet")
	h.Scope("a").Synced()
	h.Scope("b").Failed(errors.New("forbidden"))
	h.Scope("c").Refuse()
	want(t, "the reason is told, and the log has why one is refused", h.Ready(), "caches: b: not listed yet: forbidden")
	h.Announce([]string{"a"}, nil)
	want(t, "its CRD is gone", h.Ready())
	h.Scope("b").Failed(errors.New("too late")) // which is not announced any more
	h.Announce([]string{"a", "b"}, nil)
	want(t, "one that comes back is another one", h.Ready(), "caches: b: not listed yet")
	h.Scope("b").Synced()
	want(t, "what is announced again keeps its state", h.Ready())
	h.Scope("a").Begin()
	want(t, "its controller starts anew", h.Ready(), "caches: a: not listed yet")
}

// Who should not be at work is in order.
func TestPause(t *testing.T) {
	ctx, pause := context.WithCancel(t.Context())
	h := serving(ctx, "a")
	want(t, "it serves", h.Ready(), "caches: a: not listed yet")
	pause()
	want(t, "it is paused", h.Ready())
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
	want(t, "the limit is ten minutes", h.Alive(), "workers: "+nodes+"\n"+pods)
	dismiss()
	want(t, "what has ended is not stuck", h.Alive(), "workers: "+nodes)
	h.Limit(health.Limits{Stuck: 2 * time.Hour})
	want(t, "the limit is a setting", h.Alive())
	h.Limit(health.Limits{Stuck: -1})
	want(t, "it may be none", h.Alive())
}

// Who has no health, such as a test of the parts, reports to nobody.
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
		t.Error("nothing is watched")
	}
}

// A deployment's smoke test waits until nothing is missing any more, and no longer.
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
