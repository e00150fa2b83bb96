package program_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
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

func (r *recorder) Apply(given commandline.RunFlags) { r.note("apply " + given.Metrics.BindAddress) }
func (r *recorder) UseClient(client.Client)          { r.note("client") }
func (r *recorder) ExitTimeout() time.Duration       { return time.Hour }
func (r *recorder) CleanUp(context.Context) error    { r.note("cleanup"); return nil }
func (r *recorder) StartUp(context.Context) (bool, error) {
	r.note("startup")
	return r.isReady, r.failure
}

func (r *recorder) SetupWithManager(m ctrl.Manager, _ func() string) error {
	r.note("setup")
	return m.Add(manager.RunnableFunc(func(context.Context) error { r.serve(); return nil }))
}

func processOf(r *recorder) program.Process {
	return program.Process{RunnableOperator: r, Name: operator, Log: logr.Discard}
}

func TestAround(t *testing.T) {
	failed := errors.New("startup failed")
	for name, tc := range map[string]struct {
		reason  string
		ready   bool
		failure error
		want    []string
	}{
		"Ready": {"a ready operator is served and then cleaned up",
			true, nil, []string{"apply 8080", "client", "startup", "serve", "cleanup"}},
		"Stopped": {"an operator that is stopped during startup is not served",
			false, nil, []string{"apply 8080", "client", "startup"}},
		"Failed": {"an operator whose startup fails is neither served nor cleaned up",
			false, failed, []string{"apply 8080", "client", "startup"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{isReady: tc.ready, failure: tc.failure}
			given := commandline.RunFlags{Metrics: serving.Metrics{BindAddress: "8080"}}
			err := processOf(r).Around(t.Context(), given, func() error {
				r.note("serve")
				return nil
			})
			if !errors.Is(err, tc.failure) {
				t.Errorf("%s: Around(): %v, want %v", tc.reason, err, tc.failure)
			}
			if d := cmp.Diff(tc.want, r.calls); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{isReady: true, serve: cancel}
	given := program.ResolvedRunSettings{Config: memapi.Config(memapi.New()), Log: logr.Discard(),
		MetricsBindAddress: "0"}
	if err := processOf(r).Run(ctx, given); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"client", "apply 0", "startup", "setup", "cleanup"}, r.calls); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

func TestRunFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		settings program.ResolvedRunSettings
		want     string
	}{
		"NoCluster": {
			"without a Config, the error of the login is returned", program.ResolvedRunSettings{},
			"there is no cluster",
		},
		"Liveness": {
			"a liveness address that is not a URL is an error",
			program.ResolvedRunSettings{Liveness: "8080"}, `running operator "test.example.org": Liveness:`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.settings.Log = logr.Discard()
			err := processOf(&recorder{isReady: true}).Run(t.Context(), tc.settings)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Run(): %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestResolveRunSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		input  program.ResolvedRunSettings
		logsIn bool
		want   string
	}{
		"Nothing": {"all fields are optional", program.ResolvedRunSettings{}, true, ""},
		"Console": {"a console without an address is an error",
			program.ResolvedRunSettings{Console: true}, false, "Console: it is served at"},
		"TwoConfigs": {
			"a Config and a Context exclude each other",
			program.ResolvedRunSettings{Config: &rest.Config{}, Context: "a"}, false, "Config says",
		},
		"Login": {"a Config and a login handler exclude each other",
			program.ResolvedRunSettings{Config: &rest.Config{}}, true, "Config says"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.input.ResolveDefaults(nil, tc.logsIn)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Resolve(): %v, want %q", tc.reason, err, tc.want)
			}
			if err == nil && tc.input.Log.GetSink() == nil {
				t.Errorf("%s: Resolve() does not choose a logger", tc.reason)
			}
		})
	}
}
