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
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// checkedManager is a manager that records its health checks.
type checkedManager struct {
	ctrl.Manager

	t              *testing.T
	hasOtherLeader bool // another process is the leader
	ready, alive   map[string]healthz.Checker
}

func newCheckedManager(t *testing.T, connection http.RoundTripper) *checkedManager {
	t.Helper()
	return &checkedManager{
		Manager: managerOn(t, connection, logr.Discard()), t: t,
		ready: map[string]healthz.Checker{}, alive: map[string]healthz.Checker{},
	}
}

func (e *checkedManager) AddReadyzCheck(name string, check healthz.Checker) error {
	e.ready[name] = check
	return e.Manager.AddReadyzCheck(name, check)
}

func (e *checkedManager) AddHealthzCheck(name string, check healthz.Checker) error {
	e.alive[name] = check
	return e.Manager.AddHealthzCheck(name, check)
}

// Add ignores runnables of the leader if another process is the leader.
func (e *checkedManager) Add(r manager.Runnable) error {
	if own, ok := r.(manager.LeaderElectionRunnable); e.hasOtherLeader && ok && own.NeedLeaderElection() {
		return nil
	}
	return e.Manager.Add(r)
}

// requireFailingChecks compares the failing checks, and the beginnings of their messages.
func (e *checkedManager) requireFailingChecks(when string, checks map[string]healthz.Checker, failing ...string) {
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

// refusingConnections returns connections that refuse certain requests with the code, while it is set.
type refusingConnections struct {
	code atomic.Int64
}

func (s *refusingConnections) connect(server *memapi.Server, verbs ...string) *memapi.Connection {
	return interceptRequests(server, func(_ context.Context, r memapi.Request) int {
		if r.Resource.Plural == "configmaps" && slices.Contains(verbs, r.Verb) {
			return int(s.code.Load())
		}
		return 0
	})
}

// switchableTransport fails all requests, including those of discovery, while it is down.
type switchableTransport struct {
	http.RoundTripper

	down atomic.Bool
}

func (s *switchableTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.down.Load() {
		return nil, fmt.Errorf("dialling %s: connection refused", r.URL.Host)
	}
	return s.RoundTripper.RoundTrip(r)
}

func created(t *testing.T) reconcilers.Registration {
	t.Helper()
	return registrationFor(t, "configmaps", &handlers.Handler{ID: "c", Reason: cause.Create, Call: succeed})
}

func TestReadyOnceAllIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		newDirectClient(t, server).create("Secret", "s")
		way := &switchableTransport{RoundTripper: delayLists(server, "secrets", steady(20*time.Second))}
		way.down.Store(true)
		m := newCheckedManager(t, way)
		_, filling := byName()
		stop := operateIn(t, m, reconcilers.Options{}, created(t), registrationFor(t, "secrets", filling))
		defer stop()
		synctest.Wait()
		m.requireFailingChecks("while the API server is down", m.ready,
			"discovery: the API server has not answered yet for: configmaps, secrets",
			"indices: handlers wait until the indexed resources are listed: secrets")
		time.Sleep(time.Hour)
		m.requireFailingChecks("after an hour", m.ready, "discovery", "indices")
		m.requireFailingChecks("a restart would not help", m.alive)
		way.down.Store(false)
		time.Sleep(75 * time.Second)
		m.requireFailingChecks("after the API server is back and was asked again", m.ready)
	})
}

func TestNotReadyWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCheckedManager(t, unavailable(memapi.New(), "configmaps", http.StatusForbidden))
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		time.Sleep(time.Hour)
		m.requireFailingChecks("without the permission to list", m.ready, "caches: configmaps: not listed yet: ")
		m.requireFailingChecks("a restart would not help", m.alive)
	})
}

// TestReadyWithoutTheKind shows that a kind that does not exist yet does not affect readiness.
func TestReadyWithoutTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCheckedManager(t, memapi.New())
		stop := operateIn(t, m, reconcilers.Options{}, registrationFor(t, "unknowns.example.org",
			&handlers.Handler{ID: "c", Reason: cause.Create, Call: succeed}))
		defer stop()
		time.Sleep(time.Minute)
		m.requireFailingChecks("while the CRD is not installed", m.ready)
	})
}

func TestReadyWhileWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watches refusingConnections
		dead := &mutableTransport{RoundTripper: watches.connect(memapi.New(), "watch")}
		m := newCheckedManager(t, dead)
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		time.Sleep(time.Hour)
		m.requireFailingChecks("while watches end and are renewed", m.ready)
		dead.muteWatches()
		time.Sleep(time.Hour)
		m.requireFailingChecks("after a dead watch was renewed", m.ready)
		dead.muteWatches()
		watches.code.Store(http.StatusInternalServerError)
		time.Sleep(3 * time.Minute)
		m.requireFailingChecks("while a dead watch cannot be renewed", m.ready, "watches: configmaps: not watched for ")
		m.requireFailingChecks("a restart would not help", m.alive)
		watches.code.Store(0)
		time.Sleep(3 * time.Minute)
		m.requireFailingChecks("after the dead watch was renewed", m.ready)
	})
}

// TestReadyWhileIndexed shows that a replica which shares the objects is not ready while the watch for an index of all
// objects is missing, although its own ranges are watched.
func TestReadyWhileIndexed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		refused.Store(true)
		m := newCheckedManager(t, interceptRequests(memapi.New(), func(_ context.Context, r memapi.Request) int {
			isWatch := r.Resource.Plural == "configmaps" && r.Verb == "watch"
			if isWatch && r.Query.Get("shardSelector") == "" && refused.Load() {
				return http.StatusInternalServerError
			}
			return 0
		}))
		_, filling := byName()
		options := reconcilers.Options{Gate: &reconcilers.Gate{}, Ranges: sharding.NewOwnRanges(rangeCount, 0, 1)}
		stop := operateIn(t, m, options, created(t), registrationFor(t, "configmaps", filling))
		defer stop()
		time.Sleep(3 * time.Minute)
		m.requireFailingChecks("while the watch of all objects is refused", m.ready,
			"watches: configmaps: not watched for ")
		refused.Store(false)
		time.Sleep(3 * time.Minute)
		m.requireFailingChecks("after the watch has begun", m.ready)
	})
}

// TestReadyWithoutWork shows that a paused operator is ready, even without the API server.
func TestReadyWithoutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &switchableTransport{RoundTripper: memapi.New()}
		m, gate := newCheckedManager(t, way), &reconcilers.Gate{}
		stop := operateIn(t, m, reconcilers.Options{Gate: gate}, created(t))
		defer stop()
		time.Sleep(time.Second)
		gate.Set(true)
		way.down.Store(true)
		time.Sleep(time.Hour)
		m.requireFailingChecks("in a pause without the API server", m.ready)
		gate.Set(false)
		time.Sleep(time.Minute)
		m.requireFailingChecks("after the pause, without the API server", m.ready,
			"caches: configmaps: not listed yet: ")
	})
}

func TestReadyWithoutLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCheckedManager(t, memapi.New())
		m.hasOtherLeader = true
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		synctest.Wait()
		m.requireFailingChecks("directly after the start of the manager", m.ready,
			"startup: the operator is not started yet")
		time.Sleep(10 * time.Second)
		m.requireFailingChecks("while another process is the leader", m.ready)
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
				m := newCheckedManager(t, server)
				newDirectClient(t, server).createMany("ConfigMap", "c", tc.objects)
				end := make(chan struct{})
				stop := operateIn(t, m, tc.own, registrationFor(t, "configmaps", &handlers.Handler{
					ID: "c", Reason: cause.Create, Policy: handlers.Policy{Timeout: tc.timeout},
					Call: func(context.Context, *handlers.Invocation) error { <-end; return nil },
				}))
				defer stop()
				time.Sleep(tc.after)
				m.requireFailingChecks(tc.reason, m.alive, tc.want...)
				m.requireFailingChecks("readiness must not depend on stuck handlers", m.ready)
				close(end)
				time.Sleep(time.Minute)
				m.requireFailingChecks("after the handler has returned", m.alive)
			})
		})
	}
}
