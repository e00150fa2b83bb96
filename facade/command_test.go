package kopf_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// execute runs the command line of the operator and returns the exit code and the output.
func execute(t *testing.T, op *kopf.Operator, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := op.Command()
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	return kopf.ExitCode(cmd.ExecuteContext(t.Context())), stdout.String(), stderr.String()
}

// withoutCluster hides the clusters that the machine is configured for.
func withoutCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

// TestWrongCommandLines shows the exit codes and the errors of invalid command lines.
func TestWrongCommandLines(t *testing.T) {
	withoutCluster(t)
	broken := newCreationOperator(nil)
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	cases := map[string]struct {
		reason string
		op     *kopf.Operator
		args   []string
		code   int
		want   []string
	}{
		"both scopes": {
			"-A together with -n is an error", newCreationOperator(succeed), []string{"-A", "-n", "a"}, 2,
			[]string{"exclude each other", "--help"},
		},
		"both scopes of run": {
			"run -A together with -n is an error", newCreationOperator(succeed), []string{"run", "-A", "-n", "a"}, 2,
			[]string{"exclude each other", "run --help"},
		},
		"secure metrics": {
			"metrics that are off cannot be secure", newCreationOperator(succeed),
			[]string{"run", "--metrics-secure"}, 2,
			[]string{"the metrics are off: set --metrics-bind-address"},
		},
		"plain certificate": {
			"a certificate without TLS is an error", newCreationOperator(succeed),
			[]string{"--metrics-cert-dir", "x"}, 2,
			[]string{"add --metrics-secure"},
		},
		"missing certificate": {
			"a certificate that cannot be read is an error", newCreationOperator(succeed),
			[]string{"--metrics-bind-address=:0", "--metrics-secure", "--metrics-cert-dir", missing}, 2,
			[]string{"--metrics-cert-dir: open ", "missing.yaml"},
		},
		"elected manifests": {
			"flags of the operator are checked", newCreationOperator(succeed),
			[]string{"manifests", "--leader-elect", "--peering", "p"}, 2,
			[]string{"excludes --standalone and --peering"},
		},
		"unknown flag": {
			"an unknown flag is an error",
			newCreationOperator(succeed), []string{"--namspace", "a"}, 2,
			[]string{"unknown flag: --namspace", "--help"},
		},
		"unknown command": {
			"an unknown command is an error",
			newCreationOperator(succeed), []string{"rum"}, 2, []string{`unknown command or argument "rum"`},
		},
		"files": {
			"a file argument is an error, unlike in Kopf", newCreationOperator(succeed), []string{"run", "handlers.py"},
			2,
			[]string{`argument "handlers.py"`},
		},
		"namespace": {
			"an invalid name of a namespace is an error", newCreationOperator(succeed), []string{"-n", "team_a"}, 2,
			[]string{`"team_a" is not the name of a namespace`},
		},
		"unknown format": {
			"an unknown log format is an error that lists the formats",
			newCreationOperator(succeed), []string{"-A", "--log-format", "xml"}, 2,
			[]string{`unknown log format "xml": it is plain, full or json`},
		},
		"quiet and verbose": {
			"-q together with -v is an error",
			newCreationOperator(succeed), []string{"-A", "-qv"}, 2, []string{"-q (--quiet) excludes"},
		},
		"mistakes in registrations": {
			"errors of registrations are reported without a cluster", broken, []string{"-A"}, 1,
			[]string{`OnCreate("fn"): the function is nil`},
		},
		"nil operator": {
			"a nil operator is an error", nil, []string{"-A"}, 1, []string{"the operator is nil"},
		},
		"no cluster": {
			"the error for a missing cluster lists the ways to configure one", newWidgetOperator(), []string{"-A"}, 1,
			[]string{"no cluster is configured", "--kubeconfig", "KUBECONFIG", "~/.kube/config"},
		},
		"no such file in the environment": {
			"the error names the missing file of KUBECONFIG",
			newWidgetOperator(), []string{"-A"}, 1, []string{"KUBECONFIG names files that do not exist: /"},
		},
		"no such file": {
			"the error names the missing file of --kubeconfig",
			newWidgetOperator(), []string{"-A", "--kubeconfig", missing}, 1, []string{missing},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, _, errs := execute(t, c.op, c.args...)
			if code != c.code {
				t.Errorf("%s: exit code %d, want %d", c.reason, code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%s\nwant %q on stderr, got: %s", c.reason, want, errs)
				}
			}
			if strings.Contains(errs, "Usage:") {
				t.Errorf("an error is printed without the usage:\n%s", errs)
			}
		})
	}
}

// newWidgetOperator returns an operator whose types are in its scheme.
func newWidgetOperator() *kopf.Operator {
	op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
	kopf.For(op, &Widget{}).OnCreate("fn", succeed)
	return op
}

// TestExitCode shows that an error is exit code 1.
func TestExitCode(t *testing.T) {
	if got := kopf.ExitCode(nil); got != 0 {
		t.Errorf("a graceful stop has exit code 0: got %d", got)
	}
	if got := kopf.ExitCode(errors.New("an error")); got != 1 {
		t.Errorf("an error has exit code 1: got %d", got)
	}
}

// TestHelpText shows that the help lists examples and all important flags.
func TestHelpText(t *testing.T) {
	code, out, _ := execute(t, newWidgetOperator(), "--help")
	if code != 0 {
		t.Errorf("--help has exit code 0: got %d", code)
	}
	for _, want := range []string{
		"Run the operator test.example.org", "Examples:", "-A\n", "-n team-a -n team-b --verbose", "--log-format json",
		"-A, --all-namespaces", "-n, --namespace", "--standalone ", "-P, --peering name", "-p, --priority number",
		"--dev ", "--context name", "completion ",
		"-v, --verbose", "-d, --debug", "-q, --quiet", "--log-format",
		"--kubeconfig",
		"--metrics-bind-address", "--health-probe-bind-address", "--debug-bind-address", "--console",
		"--profiling", "--version", "run ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in the help, got:\n%s", want, out)
		}
	}
	for _, unwanted := range []string{" string ", "stringArray"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("the help has the Go type %q, got:\n%s", unwanted, out)
		}
	}
}

// TestVersion shows that the flag and the command print the version.
func TestVersion(t *testing.T) {
	for _, how := range []string{"--version", "version"} {
		code, out, _ := execute(t, newWidgetOperator(), how)
		if code != 0 || !strings.HasPrefix(out, "test.example.org ") || !strings.Contains(out, "go1.") {
			t.Errorf("%s prints the name and the version of Go: got %d, %q", how, code, out)
		}
	}
}

// TestPeeringOfFlags shows that flags of peering override the settings of the program, and that startup handlers
// get the result.
func TestPeeringOfFlags(t *testing.T) {
	withoutCluster(t)
	cases := map[string]struct {
		reason     string
		standalone bool // in code
		args       []string
		want       kopf.PeeringSettings
	}{
		"none": {
			"without flags, the settings of the program apply", true, nil, kopf.PeeringSettings{Standalone: true}},
		"name": {
			"-P overrides Standalone and makes the peering mandatory",
			true, []string{"-P", "a"}, kopf.PeeringSettings{Name: "a", Mandatory: true}},
		"priority": {"-p sets the priority", false, []string{"-p", "5"}, kopf.PeeringSettings{Priority: 5}},
		"development": {
			"--dev sets the priority 666, as in Kopf", false, []string{"--dev"}, kopf.PeeringSettings{Priority: 666}},
		"standalone": {
			"--standalone turns peering off", false, []string{"--standalone"}, kopf.PeeringSettings{Standalone: true}},
		"both": {
			"--standalone overrides -P, as in Kopf", false, []string{"--standalone", "-P", "a"}, kopf.PeeringSettings{
				Name: "a", Mandatory: true, Standalone: true,
			}},
		"not alone": {
			"--standalone=false overrides the settings", true, []string{"--standalone=false"}, kopf.PeeringSettings{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Standalone: c.standalone}})
			var got kopf.PeeringSettings
			op.OnStartup("look", func(_ context.Context, s *kopf.Activity) error {
				got = s.Settings.Peering
				return kopf.Permanent(errors.New("that was all"))
			})
			code, _, errs := execute(t, op, append(c.args, "-A")...)
			if code != 1 || !strings.Contains(errs, "that was all") || got != c.want {
				t.Errorf("%s: want %+v, got %+v; exit code %d, %s", c.reason, c.want, got, code, errs)
			}
		})
	}
}

// unreachableKubeconfig is the kubeconfig of a cluster that does not exist.
const unreachableKubeconfig = "internal/commandline/testdata/nowhere.yaml"

// TestRunStops shows that a run whose context has ended exits with code 0, and prints a hint if no scope is given.
func TestRunStops(t *testing.T) {
	cases := map[string]struct {
		reason     string
		namespaces []string
		args       []string
		wantHint   bool
	}{
		"no scope":      {"a run without a scope prints a hint", nil, nil, true},
		"whole cluster": {"a run with -A prints no hint", nil, []string{"-A", "--log-format=JSON"}, false},
		"namespaces": {
			"a run with -n prints no hint",
			nil, []string{"run", "-n", "a", "--namespace=b", "--standalone", "--log-format=plain"}, false,
		},
		"namespaces in code": {
			"a run with namespaces in the settings prints no hint", []string{"a"}, nil, false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withoutCluster(t)
			op := kopf.New("test.example.org", kopf.Settings{
				Namespaces: c.namespaces, AddToScheme: runtime.SchemeBuilder{addWidgets},
			})
			kopf.For(op, &Widget{}).OnCreate("fn", succeed)
			var stderr bytes.Buffer
			cmd := op.Command()
			cmd.SetArgs(append(c.args, "--kubeconfig", unreachableKubeconfig, "-q"))
			cmd.SetErr(&stderr)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if code := kopf.ExitCode(cmd.ExecuteContext(ctx)); code != 0 {
				t.Errorf("%s: exit code %d: %s", c.reason, code, stderr.String())
			}
			if hinted := strings.Contains(stderr.String(), "Neither -n nor -A is given"); hinted != c.wantHint {
				t.Errorf("%s\nhint: got %v, want %v: %s", c.reason, hinted, c.wantHint, stderr.String())
			}
		})
	}
}
