package commandline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// TestPeering shows that only the given flags and variables of peering reach the operator.
func TestPeering(t *testing.T) {
	cases := map[string]struct {
		reason      string
		environment map[string]string
		args        string
		want        serving.PeeringFlags
	}{
		"nothing": {"nothing is set without flags", nil, "", serving.PeeringFlags{}},
		"name":    {"-P sets the peering, as in Kopf", nil, "-P a.b", serving.PeeringFlags{Name: "a.b"}},
		"priority": {"-p sets a decimal priority, as in Kopf",
			nil, "-p 010", serving.PeeringFlags{Priority: ptr.To(10)}},
		"no priority": {"a priority of zero is set",
			nil, "run --priority=0", serving.PeeringFlags{Priority: ptr.To(0)}},
		"low": {"a negative priority is accepted, as in Kopf",
			nil, "-p -5", serving.PeeringFlags{Priority: ptr.To(-5)}},
		"dev": {"--dev overrides the priority, as in Kopf",
			nil, "--dev -p 5", serving.PeeringFlags{Priority: ptr.To(666)}},
		"alone": {"--standalone makes the operator stand alone",
			nil, "--standalone", serving.PeeringFlags{Standalone: ptr.To(true)}},
		"not alone": {"a negative variable makes the operator not stand alone",
			map[string]string{"KOPF_RUN_STANDALONE": "no"}, "", serving.PeeringFlags{Standalone: ptr.To(false)}},
		"variables": {"the variables of Kopf set peering and priority",
			map[string]string{"KOPF_RUN_PEERING": "a", "KOPF_RUN_PRIORITY": "5"}, "run",
			serving.PeeringFlags{Name: "a", Priority: ptr.To(5)}},
		"longer name": {"KOPF_RUN_PEERING_NAME sets the peering, as in Kopf",
			map[string]string{"KOPF_RUN_PEERING_NAME": "a"}, "",
			serving.PeeringFlags{Name: "a"}},
		"developer": {"the flag --dev=false overrides the variable",
			map[string]string{"KOPF_RUN_DEV": "1"}, "--dev=false -p 5",
			serving.PeeringFlags{Priority: ptr.To(5)}},
		"before the command": {"flags before the command work like flags after it",
			nil, "-P a -p 1 --dev run", serving.PeeringFlags{
				Name: "a", Priority: ptr.To(666),
			}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := &fakeOperator{}
			got := runWith(t, op, c.environment, strings.Fields(c.args)...)
			if got.code != 0 {
				t.Fatalf("%s: exit code %d: %s", c.reason, got.code, got.text)
			}
			if d := cmp.Diff(c.want, op.peering); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestWrongFlags shows that a wrong command line is an error and does not start the operator.
func TestWrongFlags(t *testing.T) {
	cases := map[string]struct{ reason, args, want string }{
		"peering": {"an invalid name of a peering object is an error",
			"-P a_b", `-P (--peering): "a_b" is not the name of a peering object`},
		"priority": {"a priority that is not a whole number is an error",
			"-p 1.5", `invalid argument "1.5" for "-p, --priority" flag: it is not a whole number`},
		"module": {"a Python module is an error", "-m a.b", "-m (--module): the handlers are in this program already"},
		"files": {"a Python file is an error",
			"run a.py", `unknown argument "a.py": the handlers are in this program already`},
		"command": {"a misspelled command suggests the right one",
			"rum", `unknown command or argument "rum"; did you mean run?`},
		"beginning": {"the beginning of a command suggests that command", "mani", `"mani"; did you mean manifests?`},
		"other argument": {"an argument that resembles no command gets no suggestion",
			"handlers.py", "argument \"handlers.py\"\nRun "},
		"shell": {"an unknown shell suggests the known ones",
			"completion xsh", `argument "xsh"; did you mean bash or fish or zsh?`},
		"shell and more": {"a shell with an argument is an error",
			"completion bash more", `unknown command or argument "more"`},
		"flag of a shell": {"an unknown flag of a shell is an error", "completion bash --more", "unknown flag: --more"},
		"topic": {"help on an unknown command suggests the right one",
			"help rum", `unknown command or argument "rum"; did you mean run?`},
		"version": {"version with an argument is an error", "version 1", `unknown command or argument "1"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := &fakeOperator{}
			cmd := commandline.New(commandline.Program{Process: op.asProcess()})
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(strings.Fields(c.args))
			err := cmd.ExecuteContext(t.Context())
			if commandline.ExitCode(err) != 2 || !strings.Contains(out.String(), c.want) || op.servedNamespaces != nil {
				t.Errorf("%s: exit code %d, want 2, and %q in: %s", c.reason, commandline.ExitCode(err), c.want, &out)
			}
		})
	}
}
