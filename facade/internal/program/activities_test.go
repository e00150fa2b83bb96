package program_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

const operator = "test.example.org"

// newRunner returns a runner with one handler of the activity.
func newRunner(
	activity string, call func(ctx context.Context, call *handlers.Invocation) (any, error),
) *program.ActivityRunner {
	r := &registry.HandlerRegistry{Location: "main.go:1", Log: logr.Discard}
	r.RegisterActivity("On", &handlers.Handler{
		ID: "own", Family: handlers.Activity, Activity: activity, ActivityFunc: call,
		IsFrequent: activity == activities.Probe,
	}, nil)
	return program.NewActivityRunner(operator, r, func() program.ActivityState {
		return program.ActivityState{
			Backoff: time.Second, CleanupTimeout: time.Minute, Metrics: prometheus.NewRegistry(),
		}
	})
}

func TestStartUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		runner := newRunner(activities.Startup, func(context.Context, *handlers.Invocation) (any, error) {
			if calls++; calls == 1 {
				return nil, errors.New("not yet")
			}
			return nil, nil
		})
		if ready, err := runner.StartUp(t.Context()); !ready || err != nil || calls != 2 {
			t.Errorf("StartUp(): %t, %v after %d calls, want success after a retry", ready, err, calls)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		calls = 0
		if ready, err := runner.StartUp(stopped); ready || err != nil {
			t.Errorf("StartUp() of a stopped operator: %t, %v, want neither", ready, err)
		}
	})
}

func TestCleanUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		err := newRunner(activities.Cleanup, func(ctx context.Context, _ *handlers.Invocation) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}).CleanUp(stopped)
		if took := time.Since(began); err == nil || took != time.Minute {
			t.Errorf("CleanUp() of a handler that hangs: %v after %s, want an error after a minute", err, took)
		}
	})
}

func TestLogIn(t *testing.T) {
	for name, given := range map[string]*credentials.Info{"Credentials": {Token: "a"}, "None": nil} {
		t.Run(name, func(t *testing.T) {
			runner := newRunner(activities.Login, func(context.Context, *handlers.Invocation) (any, error) {
				return given, nil
			})
			got, err := runner.LogIn(t.Context(), serving.ClusterConfig{})
			if d := cmp.Diff(map[string]*credentials.Info{"own": given}, got); d != "" || err != nil {
				t.Errorf("LogIn(): %v; -want, +got:\n%s", err, d)
			}
		})
	}
}

// checkedManager is a manager that only stores its health check.
type checkedManager struct {
	ctrl.Manager

	check healthz.Checker
}

func (m *checkedManager) AddHealthzCheck(_ string, check healthz.Checker) error {
	m.check = check
	return nil
}

// TestHealthCheck shows that the health check runs the probes only after the startup, which may be long: an unhealthy
// pod would be restarted.
func TestHealthCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                 string
		hasStartup, hasStarted bool
		want                   int
	}{
		"Starting":  {"a startup that has not ended runs no probe", true, false, 0},
		"Started":   {"an ended startup lets probes run", true, true, 1},
		"NoStartup": {"without a handler of the startup, probes run at once", false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls, m, r := 0, &checkedManager{}, &registry.HandlerRegistry{Location: "main.go:1", Log: logr.Discard}
			r.RegisterActivity("OnProbe", &handlers.Handler{
				ID: "own", Family: handlers.Activity, Activity: activities.Probe, IsFrequent: true,
				ActivityFunc: func(context.Context, *handlers.Invocation) (any, error) { calls++; return nil, nil },
			}, nil)
			if tc.hasStartup {
				r.RegisterActivity("OnStartup", &handlers.Handler{
					ID: "first", Family: handlers.Activity, Activity: activities.Startup,
				}, nil)
			}
			runner := program.NewActivityRunner(operator, r, func() program.ActivityState {
				return program.ActivityState{
					HasStarted: tc.hasStarted, Backoff: time.Second, Metrics: prometheus.NewRegistry(),
				}
			})
			defer runner.Probing.StopProbing()
			if err := runner.AddProbes(m, true); err != nil {
				t.Fatal(err)
			}
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
			if err := m.check(request); err != nil || calls != tc.want {
				t.Errorf("%s: %d calls, error %v", tc.reason, calls, err)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	runner := newRunner(activities.Probe, func(context.Context, *handlers.Invocation) (any, error) {
		return http.StatusOK, nil
	})
	defer runner.Probing.StopProbing()
	got, err := runner.Probing.AwaitResults(t.Context())
	if d := cmp.Diff(map[string]any{"own": http.StatusOK}, got); d != "" || err != nil {
		t.Errorf("Ask(): %v; -want, +got:\n%s", err, d)
	}
}
