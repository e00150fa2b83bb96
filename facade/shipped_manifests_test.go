package kopf_test

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// shippedDeployments returns the Deployments that users copy, with the ExitTimeout of their programs.
func shippedDeployments(t *testing.T) map[string]time.Duration {
	t.Helper()
	program, err := os.ReadFile("../examples/database/main.go")
	if err != nil {
		t.Fatal(err)
	}
	setting := regexp.MustCompile(`ExitTimeout: +(\d+) \* time\.Second`).FindSubmatch(program)
	if setting == nil {
		t.Fatal("examples/database/main.go does not set Queueing.ExitTimeout in seconds")
	}
	seconds, err := strconv.Atoi(string(setting[1]))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]time.Duration{
		"../config/manager/manager.yaml":              0,
		"../examples/database/deploy/deployment.yaml": time.Duration(seconds) * time.Second,
	}
}

func shippedDeployment(t *testing.T, file string) (d appsv1.Deployment) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return d
}

func operatorWithExitTimeout(timeout time.Duration) *kopf.Operator {
	return kopf.New("test.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{addWidgets}, Queueing: kopf.QueueingSettings{ExitTimeout: timeout},
	})
}

// slowExit returns an operator whose handlers all take as long at the exit as the settings permit.
func slowExit(exitTimeout time.Duration, seen *journal) *kopf.Operator {
	op := operatorWithExitTimeout(exitTimeout)
	widgets := kopf.For(op, &Widget{})
	widgets.OnCreate("change", func(ctx context.Context, _ *Change) error {
		<-ctx.Done()
		seen.add("change interrupted")
		time.Sleep(time.Hour) // although it was interrupted
		return nil
	})
	widgets.Daemon("daemon", func(context.Context, *kopf.Task[*Widget]) error {
		time.Sleep(time.Hour)
		return nil
	})
	op.OnCleanup("cleanup", func(context.Context, *kopf.Activity) error {
		time.Sleep(time.Hour)
		return nil
	})
	return op
}

// TestShippedGracePeriods shows that the grace period of each shipped Deployment is longer than the exit of its
// program, even if everything takes as long as the settings permit. A pod that is killed earlier loses results of
// handlers and its cleanup.
func TestShippedGracePeriods(t *testing.T) {
	for file, exitTimeout := range shippedDeployments(t) {
		t.Run(file, func(t *testing.T) {
			grace := shippedDeployment(t, file).Spec.Template.Spec.TerminationGracePeriodSeconds
			if grace == nil {
				t.Fatal("there is no terminationGracePeriodSeconds")
			}
			synctest.Test(t, func(t *testing.T) {
				server, seen := servedAPI(), &journal{}
				op := slowExit(exitTimeout, seen)
				r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
				r.Ready()
				time.Sleep(time.Minute)
				began := time.Now()
				if err := r.Stop(); err == nil {
					t.Error("an abandoned cleanup must be an error")
				}
				seen.requireLines(t, "change interrupted")
				took, limit := time.Since(began), time.Duration(*grace)*time.Second
				if took > limit || took < 35*time.Second {
					t.Errorf("the exit takes %s, the pod is killed after %s", took, limit)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// TestShippedProbes shows that shipped Deployments have a startup probe with enough time. A program serves no probe
// before its startup handlers have succeeded, so the liveness probe must not begin earlier.
func TestShippedProbes(t *testing.T) {
	for file := range shippedDeployments(t) {
		container := shippedDeployment(t, file).Spec.Template.Spec.Containers[0]
		startup, liveness := container.StartupProbe, container.LivenessProbe
		if startup == nil || startup.HTTPGet == nil || !equality.Semantic.DeepEqual(startup.HTTPGet, liveness.HTTPGet) {
			t.Errorf("%s: the startup probe is %v, want one with the request of the liveness probe", file, startup)
			continue
		}
		if limit := startup.PeriodSeconds * startup.FailureThreshold; limit < 600 {
			t.Errorf("%s: a startup may take %d seconds, want the ten minutes of docs/health.md", file, limit)
		}
	}
}

// TestLongExitTimeout shows that under Main, handlers have the time of ExitTimeout, even if it is longer than managers
// wait by default.
func TestLongExitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, seen := servedAPI(), &journal{}
		op := operatorWithExitTimeout(2 * time.Minute)
		kopf.For(op, &Widget{}).OnCreate("create", func(ctx context.Context, _ *Change) error {
			select {
			case <-ctx.Done():
				seen.add("interrupted")
			case <-time.After(150 * time.Second):
				seen.add("finished")
			}
			return nil
		})
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(time.Minute)
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		seen.requireLines(t, "finished")
	})
}
