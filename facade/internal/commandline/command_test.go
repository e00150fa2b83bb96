package commandline_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

var errSetUp = errors.New("it is set up")

// fakeOperator records its settings and ends the run when it is set up.
type fakeOperator struct {
	configuredNamespaces []string
	servedNamespaces     []string
	peering              serving.PeeringFlags
	election             serving.ElectionFlags
	inspection           serving.Inspection
	handler              slog.Handler
}

func (f *fakeOperator) Settings() (serving.ManagerSettings, error) {
	login := func(_ context.Context, to serving.ClusterConfig) (map[string]*credentials.Info, error) {
		info, err := credentials.Login(to.Kubeconfig, to.Context)
		return map[string]*credentials.Info{"login": info}, err
	}
	settings := serving.ManagerSettings{Scheme: runtime.NewScheme(), Login: login, LogHandler: f.handler}
	for _, text := range f.configuredNamespaces {
		settings.Patterns = append(settings.Patterns, namespaces.ParsePattern(text))
	}
	return settings, nil
}

func (f *fakeOperator) asProcess() serving.Process {
	return serving.Process{Name: "test.example.org", RunnableOperator: f, Log: logr.Discard}
}

func (f *fakeOperator) UseClient(client.Client)               {}
func (f *fakeOperator) StartUp(context.Context) (bool, error) { return true, nil }
func (f *fakeOperator) CleanUp(context.Context) error         { return nil }
func (f *fakeOperator) ExitTimeout() time.Duration            { return time.Hour }

func (f *fakeOperator) Apply(given serving.RunFlags) {
	if given.HasScope {
		f.configuredNamespaces = given.Namespaces
	}
	f.servedNamespaces, f.peering, f.inspection, f.election = f.configuredNamespaces, given.Peering, given.Inspection,
		given.Election
}

func (f *fakeOperator) SetupWithManager(ctrl.Manager, func() string) error { return errSetUp }

// unreachableKubeconfig is the kubeconfig of a cluster that does not exist.
const unreachableKubeconfig = "testdata/nowhere.yaml"

func TestNamespacesOfFlagsWin(t *testing.T) {
	cases := map[string]struct {
		reason     string
		namespaces []string
		args       []string
		want       []string
	}{
		"All": {reason: "-A overrides the namespaces of the program", namespaces: []string{"a"}, args: []string{"-A"}},
		"Chosen": {reason: "a namespace that is given twice is served once",
			args: []string{"-nb", "-n", "a", "-nb"}, want: []string{"a", "b"}},
		"Program": {reason: "the namespaces of the program apply without a flag",
			namespaces: []string{"a"}, want: []string{"a"}},
		"Neither": {reason: "the default is the whole cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := &fakeOperator{configuredNamespaces: tc.namespaces}
			cmd := commandline.New(commandline.Program{Process: op.asProcess()})
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(append([]string{"run", "--kubeconfig", unreachableKubeconfig}, tc.args...))
			if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, errSetUp) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if !slices.Equal(tc.want, op.servedNamespaces) {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, op.servedNamespaces)
			}
			if hint := strings.Contains(out.String(), "Neither -n nor -A"); hint != (name == "Neither") {
				t.Errorf("%s: the hint is printed: %t", tc.reason, hint)
			}
		})
	}
}

// TestOperatorThatCannotRun shows that the error of an operator that cannot run comes before errors of flags.
func TestOperatorThatCannotRun(t *testing.T) {
	broken := errors.New("there is no operator")
	cmd := commandline.New(commandline.Program{Err: broken})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs([]string{"-A", "-n", "a"})
	err := cmd.ExecuteContext(t.Context())
	if !errors.Is(err, broken) || commandline.ExitCode(err) != 1 {
		t.Errorf("want the error of the operator and exit code 1, got %v, exit code %d", err, commandline.ExitCode(err))
	}
}
