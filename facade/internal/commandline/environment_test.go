package commandline_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
)

// ran is how a command line ended: what was served, the exit code, and what was printed.
type ran struct {
	served []string
	code   int
	text   string
}

// runWith runs the command line, which ends with code 0 if the operator would have been served.
func runWith(t *testing.T, op *fakeOperator, environment map[string]string, args ...string) ran {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	cmd := commandline.New(commandline.Program{Name: "test.example.org", Operator: op})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"--kubeconfig", nowhere}, args...))
	err := cmd.ExecuteContext(t.Context())
	if errors.Is(err, errSetUp) {
		err = nil
	}
	return ran{op.served, commandline.ExitCode(err), out.String()}
}

// Each flag may stand in the environment, under Kopf's name; the command line wins.
func TestEnvironment(t *testing.T) {
	const hint = "Neither -n nor -A is given"
	type environment map[string]string
	cases := map[string]struct {
		reason      string
		environment environment
		args        []string
		served      []string
		code        int
		want        string // in what is printed; with "-" in front, not there
	}{
		"nothing": {"the hint shows the defaults", nil, nil, nil, 0, "[WARNING ] " + hint},
		"empty":   {"an empty variable is none", environment{"KOPF_RUN_LOG_FORMAT": ""}, nil, nil, 0, "] " + hint},
		"namespaces": {"there are spaces between",
			environment{"KOPF_RUN_NAMESPACES": " b a\tb "}, nil, []string{"a", "b"}, 0, ""},
		"bracket": {"it is named", environment{"KOPF_RUN_NAMESPACES": "a-* [b"}, nil, nil, 2,
			"\"[b\" is not a pattern of namespaces: a bracket is not closed\n"},
		"comma": {"spaces separate", environment{"KOPF_RUN_NAMESPACES": "a,b"}, nil, nil, 2,
			"make it a pattern of its own"},
		"flags win": {"they are more recent",
			environment{"KOPF_RUN_NAMESPACES": "b"}, []string{"-n", "a"}, []string{"a"}, 0, ""},
		"one more": {"Kopf adds it in any case",
			environment{"KOPF_RUN_NAMESPACE": "b"}, []string{"-n", "a"}, []string{"a", "b"}, 0, ""},
		"one more of two": {"Kopf adds it in any case",
			environment{"KOPF_RUN_NAMESPACES": "a", "KOPF_RUN_NAMESPACE": "b"}, nil, []string{"a", "b"}, 0, ""},
		"whole cluster": {"it is confirmed", environment{"KOPF_RUN_CLUSTERWIDE": "Yes"}, nil, nil, 0, "-" + hint},
		"not all of it": {"it is not", environment{"KOPF_RUN_CLUSTERWIDE": "off"}, nil, nil, 0, hint},
		"both": {"as with flags; somebody has to find out why",
			environment{"KOPF_RUN_NAMESPACES": "a"}, []string{"-A"}, nil,
			2, "exclude each other\nRun 'commandline.test --help' to see what there is\n" +
				"Of the environment come --namespace (KOPF_RUN_NAMESPACES)"},
		"standalone": {"Kopf has it", environment{"KOPF_RUN_STANDALONE": "1"}, []string{"run"}, nil, 0, hint},
		"quiet":      {"warnings are left", environment{"KOPF_RUN_QUIET": "true"}, nil, nil, 0, "[WARNING ] " + hint},
		"no boolean": {"a slip must not pass for no",
			environment{"KOPF_RUN_DEBUG": "ture"}, nil, nil, 2,
			`KOPF_RUN_DEBUG="ture": it is neither true nor false`},
		"no priority": {"it is a number", environment{"KOPF_RUN_PRIORITY": "high"}, nil, nil, 2,
			`KOPF_RUN_PRIORITY="high": invalid argument "high" for "-p, --priority" flag: it is not a whole number`},
		"no peering": {"nothing can have the name", environment{"KOPF_RUN_PEERING": "a_b"}, nil, nil, 2,
			`"a_b" is not the name of a peering object`},
		"verbosities": {"as with flags", environment{"KOPF_RUN_DEBUG": "1", "KOPF_RUN_QUIET": "1"}, nil, nil, 2,
			"Of the environment come --debug (KOPF_RUN_DEBUG), --quiet (KOPF_RUN_QUIET)"},
		"other verbosity": {"one flag says it all", environment{"KOPF_RUN_QUIET": "1"}, []string{"-v"}, nil, 0, hint},
		"format": {"whatever its case",
			environment{"KOPF_RUN_LOG_FORMAT": "JSON"}, nil, nil, 0, `"message":"` + hint},
		"format of flags": {"they win",
			environment{"KOPF_RUN_LOG_FORMAT": "json"}, []string{"--log-format=plain"}, nil, 0, "\n" + hint},
		"wrong format": {"it is named", environment{"KOPF_RUN_LOG_FORMAT": "xml"}, nil, nil, 2,
			"Of the environment come --log-format (KOPF_RUN_LOG_FORMAT)"},
		"wrong refkey": {"it is named",
			environment{"KOPF_RUN_LOG_REFKEY": "message"}, nil, nil, 2, `"message" is the key`},
		"prefix": {"it can be asked for",
			environment{"KOPF_RUN_LOG_PREFIX": "1"}, []string{"--no-log-prefix"}, nil, 0, hint},
		"liveness": {"it is checked as the flag is",
			environment{"KOPF_RUN_LIVENESS_ENDPOINT": "ftp://x"}, nil, nil, 2,
			"Error: -L (--liveness): "},
		"console": {"it is a page of a server that is off",
			environment{"KOPF_RUN_CONSOLE": "1", "KOPF_RUN_DEBUG_BIND_ADDRESS": "0"}, nil, nil, 2,
			"Error: --console: it is served at the --debug-bind-address, which is off: give it an address"},
		"profiles": {"they are on a server that is off", environment{"KOPF_RUN_PROFILING": "1"},
			[]string{"--debug-bind-address="}, nil, 2,
			"Error: --profiling: it is served at the --debug-bind-address, which is off: give it an address"},
		"console at the usual address": {"that is on by default",
			nil, []string{"--console"}, nil, 0, hint},
		"own flag": {"also what Kopf does not have",
			environment{"KOPF_RUN_HEALTH_PROBE_BIND_ADDRESS": "nonsense"}, nil,
			nil, 1, "nonsense"},
		"wrong peering": {"nothing can have the name",
			environment{"KOPF_RUN_PEERING_NAME": "a_b"}, nil, nil, 2,
			"Of the environment come --peering (KOPF_RUN_PEERING_NAME)"},
		"wrong priority": {"it is told why",
			environment{"KOPF_RUN_PRIORITY": "high"}, nil, nil, 2, `KOPF_RUN_PRIORITY="high": ` +
				`invalid argument "high" for "-p, --priority" flag: it is not a whole number`},
		"modules": {"handlers are compiled in",
			environment{"KOPF_RUN_MODULES": "a"}, nil, nil, 2, "Of the environment come --module (KOPF_RUN_MODULES)"},
		"services": {"those of a service of that name are none of ours",
			environment{"KOPF_RUN_PORT": "tcp://10.0.0.1:80"}, nil, nil, 0, hint},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := runWith(t, &fakeOperator{}, c.environment, c.args...)
			if c.code == 0 {
				if d := cmp.Diff(c.served, got.served); d != "" {
					t.Errorf("%s: namespaces; -want, +got:\n%s", c.reason, d)
				}
			}
			unwanted, no := strings.CutPrefix(c.want, "-")
			if got.code != c.code || no == strings.Contains("\n"+got.text, unwanted) && unwanted != "" {
				t.Errorf("%s: exit code %d, want %d, and %q in: %s", c.reason, got.code, c.code, c.want, got.text)
			}
		})
	}
}

// The help says of each flag which variable stands for it.
func TestHelpNamesVariables(t *testing.T) {
	for _, command := range []string{"", "run"} {
		got := runWith(t, &fakeOperator{}, nil, strings.Fields(command+" --help")...)
		for _, name := range []string{
			"NAMESPACES", "CLUSTERWIDE", "STANDALONE", "LIVENESS_ENDPOINT", "VERBOSE", "DEBUG", "QUIET", "LOG_FORMAT",
			"LOG_REFKEY", "LOG_PREFIX", "KUBECONFIG", "METRICS_BIND_ADDRESS", "HEALTH_PROBE_BIND_ADDRESS",
			"DEBUG_BIND_ADDRESS", "CONSOLE", "PROFILING",
		} {
			if n := strings.Count(got.text, "[$KOPF_RUN_"+name+"]"); n != 1 {
				t.Errorf("%q: %s stands %d times in the help:\n%s", command, name, n, got.text)
			}
		}
		if strings.Contains(got.text, "NO_LOG_PREFIX") {
			t.Errorf("%q: there is no such variable:\n%s", command, got.text)
		}
	}
}

// A handler of the program's decides what lines look like, so nobody else may say so.
func TestFormatOfOwnHandler(t *testing.T) {
	cases := map[string]struct {
		reason      string
		environment map[string]string
		args        []string
		want        string
	}{
		"format":    {"it would have no effect", nil, []string{"--log-format=full"}, "--log-format has no effect"},
		"key":       {"it would have no effect", nil, []string{"--log-refkey=o"}, "--log-refkey has no effect"},
		"prefix":    {"it would have no effect", nil, []string{"--log-prefix"}, "--log-prefix has no effect"},
		"no prefix": {"it would have no effect", nil, []string{"--no-log-prefix"}, "--no-log-prefix has no effect"},
		"environment": {"it would have no effect",
			map[string]string{"KOPF_RUN_LOG_FORMAT": "json"}, nil, "(KOPF_RUN_LOG_FORMAT)"},
		"verbosity": {"it says how much, not how", nil, []string{"--quiet"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lines bytes.Buffer
			own := slog.NewTextHandler(&lines, nil)
			got := runWith(t, &fakeOperator{handler: own}, c.environment, c.args...)
			if refused := got.code == 2; refused != (c.want != "") || !strings.Contains(got.text, c.want) {
				t.Errorf("%s: exit code %d, want %q in: %s", c.reason, got.code, c.want, got.text)
			}
			if warned := strings.Contains(lines.String(), "level=WARN"); warned != (c.want == "") {
				t.Errorf("%s: the handler has %q", c.reason, lines.String())
			}
		})
	}
}
