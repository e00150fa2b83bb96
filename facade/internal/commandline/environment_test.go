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

// commandResult is the result of a command line: the served namespaces, the exit code, and the output.
type commandResult struct {
	servedNamespaces []string
	code             int
	text             string
}

// runWith runs the command line. The exit code is 0 if the operator would have been served.
func runWith(t *testing.T, op *fakeOperator, environment map[string]string, args ...string) commandResult {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	cmd := commandline.New(commandline.Program{Process: op.asProcess()})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"--kubeconfig", unreachableKubeconfig}, args...))
	err := cmd.ExecuteContext(t.Context())
	if errors.Is(err, errSetUp) {
		err = nil
	}
	return commandResult{op.servedNamespaces, commandline.ExitCode(err), out.String()}
}

// TestEnvironment shows that each flag has a variable with Kopf's name, and that the command line wins.
func TestEnvironment(t *testing.T) {
	const hint = "Neither -n nor -A is given"
	type environment map[string]string
	cases := map[string]struct {
		reason         string
		environment    environment
		args           []string
		wantNamespaces []string
		code           int
		want           string // part of the output; with "-" in front, not a part of it
	}{
		"nothing": {"the hint is printed with default settings", nil, nil, nil, 0, "[WARNING ] " + hint},
		"empty":   {"an empty variable is ignored", environment{"KOPF_RUN_LOG_FORMAT": ""}, nil, nil, 0, "] " + hint},
		"namespaces": {"spaces and tabs separate namespaces",
			environment{"KOPF_RUN_NAMESPACES": " b a\tb "}, nil, []string{"a", "b"}, 0, ""},
		"bracket": {"the error names the pattern with an open bracket",
			environment{"KOPF_RUN_NAMESPACES": "a-* [b"}, nil, nil, 2,
			"\"[b\" is not a pattern of namespaces: a bracket is not closed\n"},
		"comma": {"a comma between namespaces is an error", environment{"KOPF_RUN_NAMESPACES": "a,b"}, nil, nil, 2,
			"make it a pattern of its own"},
		"flags win": {"namespaces of flags override the variable",
			environment{"KOPF_RUN_NAMESPACES": "b"}, []string{"-n", "a"}, []string{"a"}, 0, ""},
		"one more": {"KOPF_RUN_NAMESPACE adds to the namespaces of flags, as in Kopf",
			environment{"KOPF_RUN_NAMESPACE": "b"}, []string{"-n", "a"}, []string{"a", "b"}, 0, ""},
		"one more of two": {"KOPF_RUN_NAMESPACE adds to KOPF_RUN_NAMESPACES, as in Kopf",
			environment{"KOPF_RUN_NAMESPACES": "a", "KOPF_RUN_NAMESPACE": "b"}, nil, []string{"a", "b"}, 0, ""},
		"whole cluster": {"a confirmed whole cluster prints no hint",
			environment{"KOPF_RUN_CLUSTERWIDE": "Yes"}, nil, nil, 0, "-" + hint},
		"not all of it": {"a negative KOPF_RUN_CLUSTERWIDE prints the hint",
			environment{"KOPF_RUN_CLUSTERWIDE": "off"}, nil, nil, 0, hint},
		"both": {"the error of conflicting settings names the variable",
			environment{"KOPF_RUN_NAMESPACES": "a"}, []string{"-A"}, nil,
			2, "exclude each other\nRun 'commandline.test --help' for usage\n" +
				"Of the environment come --namespace (KOPF_RUN_NAMESPACES)"},
		"standalone": {"Kopf's variable for standalone operators is accepted",
			environment{"KOPF_RUN_STANDALONE": "1"}, []string{"run"}, nil, 0, hint},
		"quiet": {"a quiet operator still prints warnings",
			environment{"KOPF_RUN_QUIET": "true"}, nil, nil, 0, "[WARNING ] " + hint},
		"no boolean": {"a misspelled boolean is an error",
			environment{"KOPF_RUN_DEBUG": "ture"}, nil, nil, 2,
			`KOPF_RUN_DEBUG="ture": it is neither true nor false`},
		"no priority": {"a priority that is not a number is an error",
			environment{"KOPF_RUN_PRIORITY": "high"}, nil, nil, 2,
			`KOPF_RUN_PRIORITY="high": invalid argument "high" for "-p, --priority" flag: it is not a whole number`},
		"no peering": {"an invalid name of a peering object is an error",
			environment{"KOPF_RUN_PEERING": "a_b"}, nil, nil, 2,
			`"a_b" is not the name of a peering object`},
		"verbosities": {"conflicting verbosities are an error that names the variables",
			environment{"KOPF_RUN_DEBUG": "1", "KOPF_RUN_QUIET": "1"}, nil, nil, 2,
			"Of the environment come --debug (KOPF_RUN_DEBUG), --quiet (KOPF_RUN_QUIET)"},
		"other verbosity": {"a verbosity flag does not conflict with another verbosity of the environment",
			environment{"KOPF_RUN_QUIET": "1"}, []string{"-v"}, nil, 0, hint},
		"format": {"the log format is not case-sensitive",
			environment{"KOPF_RUN_LOG_FORMAT": "JSON"}, nil, nil, 0, `"message":"` + hint},
		"format of flags": {"the log format of the flag overrides the variable",
			environment{"KOPF_RUN_LOG_FORMAT": "json"}, []string{"--log-format=plain"}, nil, 0, "\n" + hint},
		"wrong format": {"the error of a wrong log format names the variable",
			environment{"KOPF_RUN_LOG_FORMAT": "xml"}, nil, nil, 2,
			"Of the environment come --log-format (KOPF_RUN_LOG_FORMAT)"},
		"wrong refkey": {"a reserved reference key is an error",
			environment{"KOPF_RUN_LOG_REFKEY": "message"}, nil, nil, 2, `"message" is the key`},
		"prefix": {"--no-log-prefix does not conflict with the variable for the prefix",
			environment{"KOPF_RUN_LOG_PREFIX": "1"}, []string{"--no-log-prefix"}, nil, 0, hint},
		"liveness": {"the liveness endpoint of a variable is checked like the flag",
			environment{"KOPF_RUN_LIVENESS_ENDPOINT": "ftp://x"}, nil, nil, 2,
			"Error: -L (--liveness): "},
		"console": {"the console needs the debug server",
			environment{"KOPF_RUN_CONSOLE": "1", "KOPF_RUN_DEBUG_BIND_ADDRESS": "0"}, nil, nil, 2,
			"Error: --console: it is served at the --debug-bind-address, which is off: give it an address"},
		"profiles": {"profiling needs the debug server", environment{"KOPF_RUN_PROFILING": "1"},
			[]string{"--debug-bind-address="}, nil, 2,
			"Error: --profiling: it is served at the --debug-bind-address, which is off: give it an address"},
		"console at the usual address": {"the console works at the default debug address",
			nil, []string{"--console"}, nil, 0, hint},
		"own flag": {"a flag that Kopf does not have is read from a variable, too",
			environment{"KOPF_RUN_HEALTH_PROBE_BIND_ADDRESS": "nonsense"}, nil,
			nil, 1, "nonsense"},
		"wrong peering": {"an invalid KOPF_RUN_PEERING_NAME is an error that names the variable",
			environment{"KOPF_RUN_PEERING_NAME": "a_b"}, nil, nil, 2,
			"Of the environment come --peering (KOPF_RUN_PEERING_NAME)"},
		"wrong priority": {"a wrong priority is an error that gives the reason",
			environment{"KOPF_RUN_PRIORITY": "high"}, nil, nil, 2, `KOPF_RUN_PRIORITY="high": ` +
				`invalid argument "high" for "-p, --priority" flag: it is not a whole number`},
		"modules": {"a module in the environment is an error, as handlers are compiled in",
			environment{"KOPF_RUN_MODULES": "a"}, nil, nil, 2, "Of the environment come --module (KOPF_RUN_MODULES)"},
		"services": {"variables that Kubernetes sets for a service are ignored",
			environment{"KOPF_RUN_PORT": "tcp://10.0.0.1:80"}, nil, nil, 0, hint},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := runWith(t, &fakeOperator{}, c.environment, c.args...)
			if c.code == 0 {
				if d := cmp.Diff(c.wantNamespaces, got.servedNamespaces); d != "" {
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

// TestHelpNamesVariables shows that the help names the variable of each flag.
func TestHelpNamesVariables(t *testing.T) {
	for _, command := range []string{"", "run"} {
		got := runWith(t, &fakeOperator{}, nil, strings.Fields(command+" --help")...)
		for _, name := range []string{
			"NAMESPACES", "CLUSTERWIDE", "STANDALONE", "LIVENESS_ENDPOINT", "VERBOSE", "DEBUG", "QUIET", "LOG_FORMAT",
			"LOG_REFKEY", "LOG_PREFIX", "KUBECONFIG", "METRICS_BIND_ADDRESS", "HEALTH_PROBE_BIND_ADDRESS",
			"DEBUG_BIND_ADDRESS", "CONSOLE", "PROFILING",
		} {
			if n := strings.Count(got.text, "[$KOPF_RUN_"+name+"]"); n != 1 {
				t.Errorf("%q: %s is named %d times in the help:\n%s", command, name, n, got.text)
			}
		}
		if strings.Contains(got.text, "NO_LOG_PREFIX") {
			t.Errorf("%q: the help names NO_LOG_PREFIX, which is not a variable:\n%s", command, got.text)
		}
	}
}

// TestFormatOfOwnHandler shows that flags for the log format are an error if the program has its own log handler,
// which decides the format.
func TestFormatOfOwnHandler(t *testing.T) {
	cases := map[string]struct {
		reason      string
		environment map[string]string
		args        []string
		want        string
	}{
		"format": {"a log format without effect is an error",
			nil, []string{"--log-format=full"}, "--log-format has no effect"},
		"key": {"a reference key without effect is an error",
			nil, []string{"--log-refkey=o"}, "--log-refkey has no effect"},
		"prefix": {"a log prefix without effect is an error",
			nil, []string{"--log-prefix"}, "--log-prefix has no effect"},
		"no prefix": {"a suppressed prefix without effect is an error",
			nil, []string{"--no-log-prefix"}, "--no-log-prefix has no effect"},
		"environment": {"the error names the variable of a format without effect",
			map[string]string{"KOPF_RUN_LOG_FORMAT": "json"}, nil, "(KOPF_RUN_LOG_FORMAT)"},
		"verbosity": {"the verbosity is accepted, as it applies to any handler", nil, []string{"--quiet"}, ""},
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
				t.Errorf("%s: the handler logged %q", c.reason, lines.String())
			}
		})
	}
}
