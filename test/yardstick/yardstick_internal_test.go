package main

import (
	"bytes"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/scenarios"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason  string
		args    []string
		want    string // scenarios; contenders
		wantErr string
	}{
		"unknown scenario": {
			reason: "an unknown scenario is an error that lists the scenarios", args: []string{"-scenarios", "pod"},
			wantErr: `"pod", but changes, timers`,
		},
		"unknown contender": {
			reason: "an unknown contender is an error that lists the contenders", args: []string{"-contenders", "ours"},
			wantErr: `"ours", but ours-dynamic`,
		},
		"no rounds":      {reason: "zero rounds are an error", args: []string{"-rounds", "0"}, wantErr: "above zero"},
		"stray argument": {reason: "an unexpected argument is an error", args: []string{"pods"}, wantErr: `"pods"`},
		"no control plane": {
			reason: "an error shows how to get a control plane", args: []string{"-assets", ""}, wantErr: "make assets",
		},
		"nothing": {
			reason: "the default is all scenarios and all contenders",
			want: "changes timers restart latency pods idle; " +
				"ours-dynamic byhand-dynamic ours-typed byhand-typed minimal empty kopf",
		},
		"some": {
			reason: "the order does not depend on the flags",
			args:   []string{"-scenarios", "pods,changes", "-contenders", "kopf,ours-typed"},
			want:   "changes pods; ours-typed kopf",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			o, err := parse(append([]string{"-assets", "somewhere"}, tc.args...), &stderr)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range o.scenarios {
				got = append(got, s.Name)
			}
			together := strings.Join(got, " ") + "; " + strings.Join(o.contenders, " ")
			if diff := cmp.Diff(tc.want, together); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHelp shows that the help lists all scenarios and contenders.
func TestHelp(t *testing.T) {
	var stderr bytes.Buffer
	if _, err := parse([]string{"--help"}, &stderr); err == nil {
		t.Error("the help flag ends the program")
	}
	words := []string{"changes", "timers", "restart", "latency", "pods", "idle", "make figures NAME=yardstick"}
	words = append(words, contenders...)
	for _, word := range words {
		if !strings.Contains(stderr.String(), word) {
			t.Errorf("the help does not contain %s", word)
		}
	}
}

// TestFiguresOfAFailureArePrinted shows that a failure does not suppress the figures, which can have taken hours.
func TestFiguresOfAFailureArePrinted(t *testing.T) {
	bench := &scenarios.Bench{
		Cluster: &cluster.Cluster{}, Folder: t.TempDir(), Progress: t.Output(), Rounds: 1,
		Contenders: []scenarios.Contender{{Name: "absent", Args: []string{"no-such-program"}}},
	}
	var results bytes.Buffer
	err := options{rounds: 1}.play(t.Context(), scenarios.All[0], bench, &results)
	if err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("want an error that names the program, got %v", err)
	}
	for _, word := range []string{"changes", "not all of it was measured: ", "no-such-program", "medians of: absent"} {
		if !strings.Contains(results.String(), word) {
			t.Errorf("%q is not in\n%s", word, results.String())
		}
	}
}

// TestSmall plays all scenarios with a few objects, and checks only figures that do not depend on the machine.
func TestSmall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are measured by /proc")
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test-envtest`, or `make assets` for the folder to set it to")
	}
	cases := map[string]struct {
		args []string
		want []string // patterns of lines
	}{
		"numbers of writes": {
			args: []string{"-scenarios", "changes,pods"},
			want: []string{
				`create .* medians\n(  .*\n)*  writes/object .* 2 · 2 · 2 · 2\n`,
				`update .* medians\n(  .*\n)*  writes/object .* 1 · 1 · 1 · 1\n`,
				`downtime .* medians\n(  .*\n)*  writes/object .* 1 · 1 · 1 · 1\n`,
				`delete .* medians\n(  .*\n)*  writes/object .* 1 · 1 · 1 · 1\n`,
				`start .* medians\n(  .*\n)*  writes .* 0 · 0\n`,
			},
		},
		"timers, restart and latency": {
			args: []string{"-scenarios", "timers,restart,latency", "-contenders", "ours-dynamic,byhand-dynamic"},
			want: []string{
				`restart .* medians\n(  .*\n)*  writes .* 0 · 0\n`,
				`steady .* medians\n(  .*\n)*  calls/change .* 1 · 1\n`,
				`ticking .* medians\n(  .*\n)*  ticks/object/minute`,
			},
		},
		"idle programs": {
			args: []string{"-scenarios", "idle", "-contenders", "ours-dynamic,minimal,empty"},
			want: []string{
				`medians of: minimal · empty\n`,
				`start .* medians\n(  .*\n)*  writes .* 0 · 0\n`,
				`rest .*minimal to empty .* medians\n(  .*\n)*  anonymous MB`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{
				"-n", "20", "-rounds", "1", "-window", "1s", "-rest", "100ms", "-rate", "20", "-root", "../..",
				"-contenders", "ours-dynamic,byhand-dynamic,ours-typed,byhand-typed",
			}, tc.args...)
			o, err := parse(args, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			var results bytes.Buffer
			if err := o.run(t.Context(), &results, t.Output()); err != nil {
				t.Fatal(err)
			}
			for _, pattern := range tc.want {
				if !regexp.MustCompile(pattern).Match(results.Bytes()) {
					t.Errorf("nothing matches %q in\n%s", pattern, results.Bytes())
				}
			}
		})
	}
}
