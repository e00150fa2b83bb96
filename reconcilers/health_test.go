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

// examined is a manager whose checks can be asked.
type examined struct {
	ctrl.Manager

	t            *testing.T
	led          bool // by another process
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

// Add keeps away what only the leader runs, if that is another one.
func (e *examined) Add(r manager.Runnable) error {
	if own, ok := r.(manager.LeaderElectionRunnable); e.led && ok && own.NeedLeaderElection() {
		return nil
	}
	return e.Manager.Add(r)
}

// want compares the checks that fail, with what they say.
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

// switched is a connection on which what is chosen is refused as long as it says so.
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

// silenced fails all requests, also those of discovery, as long as it is down.
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
		m.want("the API server is down", m.ready,
			"discovery: the API server has not answered yet for: configmaps, secrets",
			"indices: handlers wait until the indexed resources are listed: secrets")
		time.Sleep(time.Hour)
		m.want("it is still down", m.ready, "discovery", "indices")
		m.want("a restart would not help", m.alive)
		way.down.Store(false)
		time.Sleep(75 * time.Second)
		m.want("it is back, and asked again", m.ready)
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
		m.want("the secrets take their time", m.ready, "caches: secrets: not listed yet",
			"indices: handlers wait until the indexed resources are listed: secrets")
		time.Sleep(time.Minute)
		m.want("they are listed", m.ready)
	})
}

func TestNotReadyWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := examine(t, unavailable(memapi.New(), "configmaps", http.StatusForbidden))
		stop := operateIn(t, m, reconcilers.Options{}, created(t))
		defer stop()
		time.Sleep(time.Hour)
		m.want("nobody gives the permission", m.ready, "caches: configmaps: not listed yet: ")
		m.want("a restart would not help", m.alive)
	})
}

// A kind that does not exist yet is waited for: there is nothing else to do.
func TestReadyWithoutTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := examine(t, memapi.New())
		stop := operateIn(t, m, reconcilers.Options{}, to(t, "unknowns.example.org",
			&handlers.Handler{ID: "c", Reason: cause.Create, Call: succeed}))
		defer stop()
		time.Sleep(time.Minute)
		m.want("its CRD is not installed", m.ready)
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
		m.want("the server ends watches, and they begin anew", m.ready)
		dead.die()
		time.Sleep(time.Hour)
		m.want("it died, and was renewed", m.ready)
		dead.die()
		watches.code.Store(http.StatusInternalServerError)
		time.Sleep(3 * time.Minute)
		m.want("it died, and is not renewed", m.ready, "watches: configmaps: not watched for ")
		m.want("a restart would not help", m.alive)
		watches.code.Store(0)
		time.Sleep(3 * time.Minute)
		m.want("it is renewed", m.ready)
	})
}

// Who should not be at work is in order, whatever the API server does.
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
		m.want("paused", m.ready)
		gate.Set(false)
		time.Sleep(time.Minute)
		m.want("at work again", m.ready, "caches: configmaps: not listed yet: ")
	})
}

// Operators of one manager are told apart by their names, whoever of them is not ready.
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
		m.want("the first one may list its kind", m.ready, "second.example.org/caches: secrets: not listed yet: ")
		if len(m.ready) != 10 || len(m.alive) != 2 {
			t.Errorf("each has all checks: %d and %d", len(m.ready), len(m.alive))
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
		m.want("the manager has just been started", m.ready, "startup: the operator is not started yet")
		time.Sleep(10 * time.Second)
		m.want("another process leads", m.ready)
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
		"Long":      {"nobody waits for it", 1, nil, reconcilers.Options{}, 5 * time.Hour, nil},
		"InTime":    {"it has time left", 1, ptr.To(time.Hour), reconcilers.Options{}, time.Hour, nil},
		"SoonAfter": {"it may be about to end", 1, ptr.To(time.Hour), reconcilers.Options{}, 69 * time.Minute, nil},
		"Deaf": {"it does not end with its context", 1, ptr.To(time.Hour), reconcilers.Options{},
			70*time.Minute + time.Second,
			[]string{`workers: ConfigMap: handler "c" goes on, 10m1s after its timeout`}},
		"Never": {"it is wanted so", 1, ptr.To(time.Hour), reconcilers.Options{StuckTimeout: -1}, 5 * time.Hour, nil},
		"Full": {
			"all workers are busy, and no object waits",
			2,
			nil,
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 3}},
			5 * time.Hour,
			nil,
		},
		"Waiting": {
			"others wait",
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
				m.want("that is no matter of readiness", m.ready)
				close(end)
				time.Sleep(time.Minute)
				m.want("it has returned", m.alive)
			})
		})
	}
}
