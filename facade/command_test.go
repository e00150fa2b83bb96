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

// execute runs the command line of the operator, and returns the exit code and what it printed.
func execute(t *testing.T, op *kopf.Operator, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := op.Command()
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	return kopf.ExitCode(cmd.ExecuteContext(t.Context())), stdout.String(), stderr.String()
}

// withoutCluster hides the clusters that the machine may know.
func withoutCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

func TestWrongCommandLines(t *testing.T) {
	withoutCluster(t)
	broken := one(nil)
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	cases := map[string]struct {
		reason string
		op     *kopf.Operator
		args   []string
		code   int
		want   []string
	}{
		"both scopes": {
			"one contradicts the other", one(succeed), []string{"-A", "-n", "a"}, 2,
			[]string{"exclude each other", "--help"},
		},
		"both scopes of run": {
			"the command may be spelled", one(succeed), []string{"run", "-A", "-n", "a"}, 2,
			[]string{"exclude each other", "run --help"},
		},
		"unknown flag": {
			"a slip", one(succeed), []string{"--namspace", "a"}, 2, []string{"unknown flag: --namspace", "--help"},
		},
		"unknown command": {
			"a slip", one(succeed), []string{"rum"}, 2, []string{`unknown command or argument "rum"`},
		},
		"files": {
			"Kopf has them, but a Go operator is compiled", one(succeed), []string{"run", "handlers.py"}, 2,
			[]string{`argument "handlers.py"`},
		},
		"namespace": {
			"it would be watched under that name, in vain", one(succeed), []string{"-n", "team_a"}, 2,
			[]string{`"team_a" is not the name of a namespace`},
		},
		"unknown format": {
			"the right ones are told", one(succeed), []string{"-A", "--log-format", "xml"}, 2,
			[]string{`unknown log format "xml": it is plain, full or json`},
		},
		"quiet and verbose": {
			"one contradicts the other", one(succeed), []string{"-A", "-qv"}, 2, []string{"-q (--quiet) excludes"},
		},
		"mistakes in registrations": {
			"they come out without a cluster", broken, []string{"-A"}, 1,
			[]string{`OnCreate("fn"): the function is nil`},
		},
		"nil operator": {
			"also without anything else", nil, []string{"-A"}, 1, []string{"the operator is nil"},
		},
		"no cluster": {
			"what to do is more than what is missing", scheming(), []string{"-A"}, 1,
			[]string{"no cluster is configured", "--kubeconfig", "KUBECONFIG", "~/.kube/config"},
		},
		"no such file in the environment": {
			"the file is named", scheming(), []string{"-A"}, 1, []string{"KUBECONFIG names files that do not exist: /"},
		},
		"no such file": {
			"the file is named", scheming(), []string{"-A", "--kubeconfig", missing}, 1, []string{missing},
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
				t.Errorf("the error drowns in the usage:\n%s", errs)
			}
		})
	}
}

// scheming is an operator that knows its types.
func scheming() *kopf.Operator {
	op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
	kopf.For(op, &Widget{}).OnCreate("fn", succeed)
	return op
}

func TestExitCode(t *testing.T) {
	if got := kopf.ExitCode(nil); got != 0 {
		t.Errorf("a graceful stop: %d", got)
	}
	if got := kopf.ExitCode(errors.New("an error")); got != 1 {
		t.Errorf("an error: %d", got)
	}
}

func TestHelpTeaches(t *testing.T) {
	code, out, _ := execute(t, scheming(), "--help")
	if code != 0 {
		t.Errorf("asking for help is no error: %d", code)
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
			t.Errorf("%q is Go's word, got:\n%s", unwanted, out)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, how := range []string{"--version", "version"} {
		code, out, _ := execute(t, scheming(), how)
		if code != 0 || !strings.HasPrefix(out, "test.example.org ") || !strings.Contains(out, "go1.") {
			t.Errorf("%s: got %d, %q", how, code, out)
		}
	}
}

// The flags of peering win over the settings of the program, and handlers of the startup see them.
func TestPeeringOfFlags(t *testing.T) {
	withoutCluster(t)
	cases := map[string]struct {
		reason     string
		standalone bool // in code
		args       []string
		want       kopf.PeeringSettings
	}{
		"none":        {"the program has said so", true, nil, kopf.PeeringSettings{Standalone: true}},
		"name":        {"it is wanted", true, []string{"-P", "a"}, kopf.PeeringSettings{Name: "a", Mandatory: true}},
		"priority":    {"it is given", false, []string{"-p", "5"}, kopf.PeeringSettings{Priority: 5}},
		"development": {"as in Kopf", false, []string{"--dev"}, kopf.PeeringSettings{Priority: 666}},
		"standalone":  {"it is said", false, []string{"--standalone"}, kopf.PeeringSettings{Standalone: true}},
		"both": {"to be alone wins, as in Kopf", false, []string{"--standalone", "-P", "a"}, kopf.PeeringSettings{
			Name: "a", Mandatory: true, Standalone: true,
		}},
		"not alone": {"flags win", true, []string{"--standalone=false"}, kopf.PeeringSettings{}},
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

// nowhere is the configuration of a cluster that nobody serves.
const nowhere = "internal/commandline/testdata/nowhere.yaml"

// A whole run, as far as it goes without a cluster: the context ends before anything is served.
func TestRunStops(t *testing.T) {
	cases := map[string]struct {
		reason string
		inCode []string
		args   []string
		hint   bool
	}{
		"no scope":      {"the whole cluster is a lot, so it is said", nil, nil, true},
		"whole cluster": {"nothing is left to be said", nil, []string{"-A", "--log-format=JSON"}, false},
		"namespaces": {
			"the same", nil, []string{"run", "-n", "a", "--namespace=b", "--standalone", "--log-format=plain"}, false,
		},
		"namespaces in code": {
			"the program has said so", []string{"a"}, nil, false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withoutCluster(t)
			op := kopf.New("test.example.org", kopf.Settings{
				Namespaces: c.inCode, AddToScheme: runtime.SchemeBuilder{addWidgets},
			})
			kopf.For(op, &Widget{}).OnCreate("fn", succeed)
			var stderr bytes.Buffer
			cmd := op.Command()
			cmd.SetArgs(append(c.args, "--kubeconfig", nowhere, "-q"))
			cmd.SetErr(&stderr)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if code := kopf.ExitCode(cmd.ExecuteContext(ctx)); code != 0 {
				t.Errorf("%s: exit code %d: %s", c.reason, code, stderr.String())
			}
			if hinted := strings.Contains(stderr.String(), "Neither -n nor -A is given"); hinted != c.hint {
				t.Errorf("%s\nhint: %v, want %v: %s", c.reason, hinted, c.hint, stderr.String())
			}
		})
	}
}
