package program_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

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
