package serving_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

const operator = "test.example.org"

// recorder is an operator that records the calls of the process.
type recorder struct {
	calls   []string
	isReady bool
	failure error
	serve   func()
}

func (r *recorder) note(step string) { r.calls = append(r.calls, step) }

func (r *recorder) Settings() (serving.ManagerSettings, error) {
	return serving.ManagerSettings{
		Scheme: runtime.NewScheme(),
		Login: func(context.Context, serving.ClusterConfig) (map[string]*credentials.Info, error) {
			return nil, errors.New("there is no cluster")
		},
	}, nil
}

func (r *recorder) Apply(given serving.RunFlags)  { r.note("apply " + given.Metrics.BindAddress) }
func (r *recorder) UseClient(client.Client)       { r.note("client") }
func (r *recorder) ExitTimeout() time.Duration    { return time.Hour }
func (r *recorder) CleanUp(context.Context) error { r.note("cleanup"); return nil }
func (r *recorder) StartUp(context.Context) (bool, error) {
	r.note("startup")
	return r.isReady, r.failure
}

func (r *recorder) SetupWithManager(m ctrl.Manager, _ func() string) error {
	r.note("setup")
	return m.Add(manager.RunnableFunc(func(context.Context) error { r.serve(); return nil }))
}

func processOf(r *recorder) serving.Process {
	return serving.Process{RunnableOperator: r, Name: operator, Log: logr.Discard}
}

func TestProcess(t *testing.T) {
	failed := errors.New("startup failed")
	for name, tc := range map[string]struct {
		reason  string
		ready   bool
		failure error
		want    []string
	}{
		"Ready": {"a ready operator is served and then cleaned up",
			true, nil, []string{"apply 0", "client", "startup", "setup", "cleanup"}},
		"Stopped": {"an operator that is stopped during startup is not served",
			false, nil, []string{"apply 0", "client", "startup"}},
		"Failed": {"an operator whose startup fails is neither served nor cleaned up",
			false, failed, []string{"apply 0", "client", "startup"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			r := &recorder{isReady: tc.ready, failure: tc.failure, serve: cancel}
			err := processOf(r).Run(ctx, serving.RunOptions{
				RunFlags: serving.RunFlags{Metrics: serving.Metrics{BindAddress: "0"}}, ManagerLog: logr.Discard(),
				Config: memapi.Config(memapi.New()), Embedded: true,
			})
			if !errors.Is(err, tc.failure) {
				t.Errorf("%s: Run(): %v, want %v", tc.reason, err, tc.failure)
			}
			if d := cmp.Diff(tc.want, r.calls); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestProcessWithoutCluster shows that, without a Config, the error of the login is returned, and that the cleanup
// runs.
func TestProcessWithoutCluster(t *testing.T) {
	r := &recorder{isReady: true}
	err := processOf(r).Run(t.Context(), serving.RunOptions{ManagerLog: logr.Discard()})
	if err == nil || !strings.Contains(err.Error(), "there is no cluster") {
		t.Errorf("Run(): %v", err)
	}
	if d := cmp.Diff([]string{"apply ", "client", "startup", "cleanup"}, r.calls); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}
