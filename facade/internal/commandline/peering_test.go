package commandline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
)

// What flags and variables say of peers gets to the operator, and nothing else does.
func TestPeering(t *testing.T) {
	cases := map[string]struct {
		reason      string
		environment map[string]string
		args        string
		want        commandline.Peering
	}{
		"nothing": {"the settings count", nil, "", commandline.Peering{}},
		"name":    {"Kopf's letter", nil, "-P a.b", commandline.Peering{Name: "a.b"}},
		"priority": {"Kopf's letter; it is decimal",
			nil, "-p 010", commandline.Peering{Priority: ptr.To(10)}},
		"no priority": {"zero is one, too",
			nil, "run --priority=0", commandline.Peering{Priority: ptr.To(0)}},
		"low":   {"Kopf takes any", nil, "-p -5", commandline.Peering{Priority: ptr.To(-5)}},
		"dev":   {"it wins, as in Kopf", nil, "--dev -p 5", commandline.Peering{Priority: ptr.To(666)}},
		"alone": {"it is said", nil, "--standalone", commandline.Peering{Standalone: ptr.To(true)}},
		"not alone": {"it is said, too",
			map[string]string{"KOPF_RUN_STANDALONE": "no"}, "", commandline.Peering{Standalone: ptr.To(false)}},
		"variables": {"Kopf has them", map[string]string{"KOPF_RUN_PEERING": "a", "KOPF_RUN_PRIORITY": "5"}, "run",
			commandline.Peering{Name: "a", Priority: ptr.To(5)}},
		"longer name": {"Kopf has both", map[string]string{"KOPF_RUN_PEERING_NAME": "a"}, "",
			commandline.Peering{Name: "a"}},
		"developer": {"flags win", map[string]string{"KOPF_RUN_DEV": "1"}, "--dev=false -p 5",
			commandline.Peering{Priority: ptr.To(5)}},
		"before the command": {"as after it", nil, "-P a -p 1 --dev run", commandline.Peering{
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

// A wrong command line is told, and nothing is started.
func TestWrongFlags(t *testing.T) {
	cases := map[string]struct{ reason, args, want string }{
		"peering": {"nothing can have the name", "-P a_b", `-P (--peering): "a_b" is not the name of a peering object`},
		"priority": {"it is a number",
			"-p 1.5", `invalid argument "1.5" for "-p, --priority" flag: it is not a whole number`},
		"module": {"there is no Python", "-m a.b", "-m (--module): the handlers are in this program already"},
		"files": {"there is no Python",
			"run a.py", `unknown argument "a.py": the handlers are in this program already`},
		"command":         {"a slip", "rum", `unknown command or argument "rum"; did you mean run?`},
		"beginning":       {"a command has a longer name", "web", `"web"; did you mean webhooks?`},
		"other argument":  {"no command is like it", "handlers.py", "argument \"handlers.py\"\nRun "},
		"shell":           {"it is a mistake", "completion xsh", `argument "xsh"; did you mean bash or fish or zsh?`},
		"shell and more":  {"it has no arguments", "completion bash more", `unknown command or argument "more"`},
		"flag of a shell": {"there is none", "completion bash --more", "unknown flag: --more"},
		"topic":           {"there is no help", "help rum", `unknown command or argument "rum"; did you mean run?`},
		"version":         {"it has no arguments", "version 1", `unknown command or argument "1"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := &fakeOperator{}
			cmd := commandline.New(commandline.Program{Name: "test.example.org", Operator: op})
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(strings.Fields(c.args))
			err := cmd.ExecuteContext(t.Context())
			if commandline.ExitCode(err) != 2 || !strings.Contains(out.String(), c.want) || op.served != nil {
				t.Errorf("%s: exit code %d, want 2, and %q in: %s", c.reason, commandline.ExitCode(err), c.want, &out)
			}
		})
	}
}
