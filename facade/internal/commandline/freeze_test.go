package commandline_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
)

// TestFreezeFlags shows that errors of freeze and resume are reported before a request is sent. The cluster does not
// exist.
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
		"nothing": {"freeze without a peering is an error, as in Kopf",
			nil, "freeze", 2, "-P (--peering) is missing"},
		"no lifetime": {"freeze without a lifetime is an error, as in Kopf",
			nil, "freeze -P a", 2, "-t (--lifetime) is missing"},
		"no peering": {"resume without a peering is an error, as in Kopf",
			nil, "resume", 2, "-P (--peering) is missing"},
		"wrong name": {"an invalid name of a peering object is an error",
			nil, "resume -P a_b", 2, `"a_b" is not the name of a peering object`},
		"no time": {"a lifetime of zero is an error",
			nil, "freeze -P a -t 0", 2, "it is not between a second and 365 days"},
		"negative": {"a negative lifetime is an error",
			nil, "freeze -P a -t -5", 2, "it is not between a second and 365 days"},
		"a blink": {"a lifetime below a second is an error, as records hold whole seconds",
			nil, "freeze -P a -t 1ms", 2, "it is not between"},
		"for ever": {"a lifetime over a year is an error",
			nil, "freeze -P a -t 99999999999999", 2, "it is not between"},
		"no number": {"a lifetime that is not a number or duration is an error", nil, "freeze -P a -t soon", 2,
			"it is neither a number of seconds, such as 600, nor a duration, such as 10m"},
		"both scopes": {"-A and -n exclude each other, as for run",
			nil, "resume -P a -A -n b", 2, "exclude each other"},
		"a file": {"freeze does not accept Python files",
			nil, "freeze a.py", 2, `unknown command or argument "a.py"`},
		"lifetime of resume": {"resume does not have a lifetime",
			nil, "resume -P a -t 5", 2, "unknown shorthand flag: 't'"},
		"seconds": {"a lifetime in seconds is accepted, as in Kopf", nil, "freeze -A -P a -t 60", 1, asked},
		"duration": {"a Go duration is accepted",
			nil, "freeze -n a --peering a --lifetime 10m -p 5 -i me -m why", 1, asked},
		"developer": {"freeze accepts --dev, as in Kopf", nil, "freeze -A -P a -t 60 --dev", 1, asked},
		"any place": {"flags may precede the command", nil, "-P a -t 60 -A freeze", 1, asked},
		"to go on":  {"resume accepts an id, as in Kopf", nil, "resume -A -P a --id me", 1, asked},
		"environment": {"freeze reads the variables of Kopf's names",
			environment{"KOPF_FREEZE_PEERING": "a", "KOPF_FREEZE_LIFETIME": "60",
				"KOPF_FREEZE_CLUSTERWIDE": "1"}, "freeze", 1, asked},
		"longer name": {"KOPF_RESUME_PEERING_NAME is accepted, as in Kopf",
			environment{"KOPF_RESUME_PEERING_NAME": "a"}, "resume", 1, asked},
		"of another command": {"freeze ignores variables of other commands",
			environment{"KOPF_RUN_PEERING": "a", "KOPF_RESUME_PEERING": "a"},
			"freeze -t 5", 2, "-P (--peering) is missing"},
		"namespace of run": {"resume ignores KOPF_RUN_NAMESPACE", environment{"KOPF_RUN_NAMESPACE": "a"},
			"resume -A -P a", 1, asked},
		"wrong variable": {"the error of a wrong value names the variable",
			environment{"KOPF_FREEZE_LIFETIME": "soon"}, "freeze -P a", 2,
			`KOPF_FREEZE_LIFETIME="soon"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			t.Setenv("KUBECONFIG", unreachableKubeconfig)
			cmd := commandline.New(commandline.Program{Process: (&fakeOperator{}).asProcess()})
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

// TestCompletion shows that shells complete commands and known values of flags.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "completion\n|freeze\n|resume\n|run\n|version\n",
		"run --log-format ":                 "plain\nfull\njson\n",
		"freeze --kubeconfig KC --context ": "nowhere\n",
		"run --liveness ":                   "", // and no files
		"plan --output ":                    "text\njson\n",
		"explain --address ":                "",
	} {
		t.Run(args, func(t *testing.T) {
			cmd := commandline.New(commandline.Program{Process: (&fakeOperator{}).asProcess()})
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(&strings.Builder{})
			words := strings.Split(strings.Replace(args, "KC", unreachableKubeconfig, 1), " ")
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
				t.Errorf("the shell must not complete files: %q", &out)
			}
		})
	}
}
