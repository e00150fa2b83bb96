package reconcilers_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// examined is a manager that records its health checks.
type examined struct {
	ctrl.Manager

	t            *testing.T
	led          bool // another process is the leader
	ready, alive map[string]healthz.Checker
}

func examine(t *testing.T, connection http.RoundTripper) *examined {
	t.Helper()
	return &examined{
		Manager: managerOn(t, connection, logr.Discard()), t: t,
		ready: map[string]healthz.Checker{}, alive: map[string]healthz.Checker{},
	}
}

func (e *examined) AddReadyzCheck(name string, check healthz.Checker) error {
	e.ready[name] = check
	return e.Manager.AddReadyzCheck(name, check)
}

func (e *examined) AddHealthzCheck(name string, check healthz.Checker) error {
	e.alive[name] = check
	return e.Manager.AddHealthzCheck(name, check)
}

// Add ignores runnables of the leader if another process is the leader.
func (e *examined) Add(r manager.Runnable) error {
	if own, ok := r.(manager.LeaderElectionRunnable); e.led && ok && own.NeedLeaderElection() {
		return nil
	}
	return e.Manager.Add(r)
}

// want compares the failing checks, and the beginnings of their messages.
func (e *examined) want(when string, checks map[string]healthz.Checker, failing ...string) {
	e.t.Helper()
	var got []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := checks[name](nil); err != nil {
			got = append(got, strings.TrimPrefix(name, "coming.example.org/")+": "+err.Error())
		}
	}
	matches := len(got) == len(failing)
	for i := range min(len(got), len(failing)) {
		matches = matches && strings.HasPrefix(got[i], failing[i])
	}
	if !matches {
		e.t.Errorf("%s:\nwant %q\n got %q", when, failing, got)
	}
}

// switched returns connections that refuse certain requests with the code, while it is set.
type switched struct {
	code atomic.Int64
}

func (s *switched) connect(server *memapi.Server, verbs ...string) *memapi.Connection {
	return disturbing(server, func(_ context.Context, r memapi.Request) int {
		if r.Resource.Plural == "configmaps" && slices.Contains(verbs, r.Verb) {
			return int(s.code.Load())
		}
		return 0
	})
}

// silenced fails all requests, including those of discovery, while it is down.
type silenced struct {
	http.RoundTripper

	down atomic.Bool
}

func (s *silenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.down.Load() {
		return nil, fmt.Errorf("dialling %s: connection refused", r.URL.Host)
	}
	return s.RoundTripper.RoundTrip(r)
}

func created(t *testing.T) reconcilers.Registration {
	t.Helper()
	return to(t, "configmaps", &handlers.Handler{ID: "c", Reason: cause.Create, Call: succeed})
}

func TestReadyOnceAllIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		newPeople(t, server).create("Secret", "s")
		way := &silenced{RoundTripper: delaying(server, "secrets", steady(20*time.Second))}
		way.down.Store(true)
		m := examine(t, way)
		_, filling := byName()
		stop := operateIn(t, m, reconcilers.Options{}, created(t), to(t, "secrets", filling))
		defer stop()
		synctest.Wait()
		m.want("while the API server is down", m.ready,
			"discovery: the API server has not answered yet for: configmaps, secrets",
			"indices: handlers wait until the indexed resources are listed: secrets")
		time.Sleep(time.Hour)
		m.want("after an hour", m.ready, "discovery", "indices")
		m.want("a restart would not help", m.alive)
		way.down.Store(false)
		time.Sleep(75 * time.Second)
		m.want("after the API server is back and was asked again", m.ready)
	})
}

func TestReadyOnceListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		newPeople(t, server).create("Secret", "s")
		m := examine(t, delaying(server, "secrets", steady(20*time.Second)))
		_, filling := byName()
		stop := operateIn(t, m, reconcilers.Options{}, created(t), to(t, "secrets", filling))
		defer stop()
		time.Sleep(10 * time.Second)
		m.want("while the secrets are being listed", m.ready, "caches: secrets: not listed yet",
			"indices: handlers wait until the indexed resources are listed: secrets")
		time.Sleep(time.Minute)
		m.want("after the secrets are listed", m.ready)
	})
}

func TestNotReadyWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := examine(t, unavailable(memapi.New(), "configmaps", http.StatusForbidden))
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		time.Sleep(time.Hour)
		m.want("without the permission to list", m.ready, "caches: configmaps: not listed yet: ")
		m.want("a restart would not help", m.alive)
	})
}

// TestReadyWithoutTheKind shows that a kind that does not exist yet does not affect readiness.
func TestReadyWithoutTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := examine(t, memapi.New())
		stop := operateIn(t, m, reconcilers.Options{}, to(t, "unknowns.example.org",
			&handlers.Handler{ID: "c", Reason: cause.Create, Call: succeed}))
		defer stop()
		time.Sleep(time.Minute)
		m.want("while the CRD is not installed", m.ready)
	})
}

func TestReadyWhileWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watches switched
		dead := &dying{RoundTripper: watches.connect(memapi.New(), "watch")}
		m := examine(t, dead)
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		time.Sleep(time.Hour)
		m.want("while watches end and are renewed", m.ready)
		dead.die()
		time.Sleep(time.Hour)
		m.want("after a dead watch was renewed", m.ready)
		dead.die()
		watches.code.Store(http.StatusInternalServerError)
		time.Sleep(3 * time.Minute)
		m.want("while a dead watch cannot be renewed", m.ready, "watches: configmaps: not watched for ")
		m.want("a restart would not help", m.alive)
		watches.code.Store(0)
		time.Sleep(3 * time.Minute)
		m.want("after the dead watch was renewed", m.ready)
	})
}

// TestReadyWithoutWork shows that a paused operator is ready, even without the API server.
func TestReadyWithoutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &silenced{RoundTripper: memapi.New()}
		m, gate := examine(t, way), &reconcilers.Gate{}
		stop := operateIn(t, m, reconcilers.Options{Gate: gate}, created(t))
		defer stop()
		time.Sleep(time.Second)
		gate.Set(true)
		way.down.Store(true)
		time.Sleep(time.Hour)
		m.want("in a pause without the API server", m.ready)
		gate.Set(false)
		time.Sleep(time.Minute)
		m.want("after the pause, without the API server", m.ready, "caches: configmaps: not listed yet: ")
	})
}

// TestTwoOperatorsAreReadyByTheirNames shows that the checks of operators of one manager have the names of the
// operators.
func TestTwoOperatorsAreReadyByTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := examine(t, unavailable(memapi.New(), "secrets", http.StatusForbidden))
		second := reconcilers.Options{
			Settings: reconcilers.Settings{Name: "second.example.org", Prefix: "second.example.org"},
		}
		second.Registrations = append(second.Registrations, to(t, "secrets",
			&handlers.Handler{ID: "s", Reason: cause.Create, Call: succeed}))
		if err := reconcilers.SetupWithManager(m, second); err != nil {
			t.Fatal(err)
		}
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		time.Sleep(time.Minute)
		m.want("with permission for the kind of the first operator only", m.ready,
			"second.example.org/caches: secrets: not listed yet: ")
		if len(m.ready) != 10 || len(m.alive) != 2 {
			t.Errorf("each operator must have all checks: %d and %d", len(m.ready), len(m.alive))
		}
	})
}

func TestReadyWithoutLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := examine(t, memapi.New())
		m.led = true
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		synctest.Wait()
		m.want("directly after the start of the manager", m.ready, "startup: the operator is not started yet")
		time.Sleep(10 * time.Second)
		m.want("while another process is the leader", m.ready)
	})
}

func TestAliveUnlessStuck(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	tests := map[string]struct {
		reason  string
		objects int
		timeout *time.Duration
		own     reconcilers.Options
		after   time.Duration
		want    []string
	}{
		"Long": {"a handler without a timeout is never stuck", 1, nil, reconcilers.Options{}, 5 * time.Hour, nil},
		"InTime": {"a handler within its timeout is not stuck", 1, ptr.To(time.Hour), reconcilers.Options{},
			time.Hour, nil},
		"SoonAfter": {"a handler up to 10 minutes over its timeout is not stuck", 1, ptr.To(time.Hour),
			reconcilers.Options{}, 69 * time.Minute, nil},
		"Deaf": {"a handler more than 10 minutes over its timeout is stuck", 1, ptr.To(time.Hour),
			reconcilers.Options{},
			70*time.Minute + time.Second,
			[]string{`workers: ConfigMap: handler "c" goes on, 10m1s after its timeout`}},
		"Never": {"with a negative stuck timeout, no handler is stuck", 1, ptr.To(time.Hour),
			reconcilers.Options{StuckTimeout: -1}, 5 * time.Hour, nil},
		"Full": {
			"workers are not stuck as long as no object waits for them",
			2,
			nil,
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 3}},
			5 * time.Hour,
			nil,
		},
		"Waiting": {
			"workers are stuck if objects wait longer than the stuck timeout",
			5,
			nil,
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 2}, StuckTimeout: time.Hour},
			time.Hour + time.Second,
			[]string{"workers: ConfigMap: 4 objects wait for workers, none of which got free for 1h0m1s: " +
				`occupied by ["c"]`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				m := examine(t, server)
				newPeople(t, server).createMany("ConfigMap", "c", tc.objects)
				end := make(chan struct{})
				stop := operateIn(t, m, tc.own, to(t, "configmaps", &handlers.Handler{
					ID: "c", Reason: cause.Create, Policy: handlers.Policy{Timeout: tc.timeout},
					Call: func(context.Context, *handlers.Invocation) error { <-end; return nil },
				}))
				defer stop()
				time.Sleep(tc.after)
				m.want(tc.reason, m.alive, tc.want...)
				m.want("readiness must not depend on stuck handlers", m.ready)
				close(end)
				time.Sleep(time.Minute)
				m.want("after the handler has returned", m.alive)
			})
		})
	}
}
