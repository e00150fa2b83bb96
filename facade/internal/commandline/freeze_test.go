package commandline_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
)

// What is wrong with freeze and resume is told before a cluster is asked: nobody serves this one.
func TestFreezeFlags(t *testing.T) {
	type environment map[string]string
	const asked = "connection refused"
	cases := map[string]struct {
		reason      string
		environment environment
		args        string
		code        int
		want        string
	}{
		"nothing":     {"Kopf asks for it, too", nil, "freeze", 2, "-P (--peering) is missing"},
		"no lifetime": {"Kopf asks for it, too", nil, "freeze -P a", 2, "-t (--lifetime) is missing"},
		"no peering":  {"Kopf asks for it, too", nil, "resume", 2, "-P (--peering) is missing"},
		"wrong name":  {"nothing can have it", nil, "resume -P a_b", 2, `"a_b" is not the name of a peering object`},
		"no time":     {"it would be over", nil, "freeze -P a -t 0", 2, "it is not between a second and 365 days"},
		"negative":    {"it would be over", nil, "freeze -P a -t -5", 2, "it is not between a second and 365 days"},
		"a blink":     {"records have whole seconds", nil, "freeze -P a -t 1ms", 2, "it is not between"},
		"for ever":    {"nobody would remember", nil, "freeze -P a -t 99999999999999", 2, "it is not between"},
		"no number": {"a slip", nil, "freeze -P a -t soon", 2,
			"it is neither a number of seconds, such as 600, nor a duration, such as 10m"},
		"both scopes": {"as of run", nil, "resume -P a -A -n b", 2, "exclude each other"},
		"a file":      {"it has none", nil, "freeze a.py", 2, `unknown command or argument "a.py"`},
		"lifetime of resume": {"there is none to choose",
			nil, "resume -P a -t 5", 2, "unknown shorthand flag: 't'"},
		"seconds":   {"as in Kopf", nil, "freeze -A -P a -t 60", 1, asked},
		"duration":  {"as in Go", nil, "freeze -n a --peering a --lifetime 10m -p 5 -i me -m why", 1, asked},
		"developer": {"as in Kopf", nil, "freeze -A -P a -t 60 --dev", 1, asked},
		"any place": {"flags before the command", nil, "-P a -t 60 -A freeze", 1, asked},
		"to go on":  {"as in Kopf", nil, "resume -A -P a --id me", 1, asked},
		"environment": {"Kopf's names", environment{"KOPF_FREEZE_PEERING": "a", "KOPF_FREEZE_LIFETIME": "60",
			"KOPF_FREEZE_CLUSTERWIDE": "1"}, "freeze", 1, asked},
		"longer name": {"Kopf's names", environment{"KOPF_RESUME_PEERING_NAME": "a"}, "resume", 1, asked},
		"of another command": {"each has its own", environment{"KOPF_RUN_PEERING": "a", "KOPF_RESUME_PEERING": "a"},
			"freeze -t 5", 2, "-P (--peering) is missing"},
		"namespace of run": {"it is one of run alone", environment{"KOPF_RUN_NAMESPACE": "a"},
			"resume -A -P a", 1, asked},
		"wrong variable": {"it is named", environment{"KOPF_FREEZE_LIFETIME": "soon"}, "freeze -P a", 2,
			`KOPF_FREEZE_LIFETIME="soon"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			t.Setenv("KUBECONFIG", nowhere)
			cmd := commandline.New(commandline.Program{Name: "test.example.org", Operator: &fakeOperator{}})
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(strings.Fields(c.args))
			code := commandline.ExitCode(cmd.ExecuteContext(t.Context()))
			if code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("%s: exit code %d, want %d, and %q in: %s", c.reason, code, c.code, c.want, &out)
			}
		})
	}
}

// Shells complete commands, and the values that are known.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "completion\n|freeze\n|resume\n|run\n|version\n",
		"run --log-format ":                 "plain\nfull\njson\n",
		"freeze --kubeconfig KC --context ": "nowhere\n",
		"run --liveness ":                   "", // and no files
	} {
		t.Run(args, func(t *testing.T) {
			cmd := commandline.New(commandline.Program{Name: "test.example.org", Operator: &fakeOperator{}})
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(&strings.Builder{})
			words := strings.Split(strings.Replace(args, "KC", nowhere, 1), " ")
			cmd.SetArgs(append([]string{"__completeNoDesc"}, words...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			for one := range strings.SplitSeq(want, "|") {
				if !strings.Contains(out.String(), one) {
					t.Errorf("want %q in %q", one, &out)
				}
			}
			if args != "" && !strings.HasSuffix(out.String(), ":4\n") {
				t.Errorf("shells would go on with files: %q", &out)
			}
		})
	}
}
