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
			reason: "an error lists what there is", args: []string{"-scenarios", "pod"},
			wantErr: `"pod", but changes, timers`,
		},
		"unknown contender": {
			reason: "an error lists what there is", args: []string{"-contenders", "ours"},
			wantErr: `"ours", but ours-dynamic`,
		},
		"no rounds":      {reason: "nothing would be measured", args: []string{"-rounds", "0"}, wantErr: "above zero"},
		"stray argument": {reason: "nothing is ignored", args: []string{"pods"}, wantErr: `"pods"`},
		"no control plane": {
			reason: "an error says where to get it", args: []string{"-assets", ""}, wantErr: "make assets",
		},
		"nothing": {
			reason: "all is the default",
			want: "changes timers restart latency pods idle; " +
				"ours-dynamic byhand-dynamic ours-typed byhand-typed minimal empty kopf",
		},
		"some": {
			reason: "the order is always the same, so that outputs can be compared",
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

// TestHelp holds the help to what there is.
func TestHelp(t *testing.T) {
	var stderr bytes.Buffer
	if _, err := parse([]string{"--help"}, &stderr); err == nil {
		t.Error("whoever asks for help does not want to wait for an hour")
	}
	words := []string{"changes", "timers", "restart", "latency", "pods", "idle", "make figures NAME=yardstick"}
	words = append(words, contenders...)
	for _, word := range words {
		if !strings.Contains(stderr.String(), word) {
			t.Errorf("the help does not tell of %s", word)
		}
	}
}

// Figures may have taken hours: a failure after them does not take them along.
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

// TestSmall plays all scenarios over a few objects: no figure of time or memory is looked at, but those that are the
// same on every machine.
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
		"what is written": {
			args: []string{"-scenarios", "changes,pods"},
			want: []string{
				`create .* medians\n(  .*\n)*  writes/object .* 2 · 2 · 2 · 2\n`,
				`update .* medians\n(  .*\n)*  writes/object .* 1 · 1 · 1 · 1\n`,
				`downtime .* medians\n(  .*\n)*  writes/object .* 1 · 1 · 1 · 1\n`,
				`delete .* medians\n(  .*\n)*  writes/object .* 1 · 1 · 1 · 1\n`,
				`start .* medians\n(  .*\n)*  writes .* 0 · 0\n`,
			},
		},
		"what is not": {
			args: []string{"-scenarios", "timers,restart,latency", "-contenders", "ours-dynamic,byhand-dynamic"},
			want: []string{
				`restart .* medians\n(  .*\n)*  writes .* 0 · 0\n`,
				`steady .* medians\n(  .*\n)*  calls/change .* 1 · 1\n`,
				`ticking .* medians\n(  .*\n)*  ticks/object/minute`,
			},
		},
		"who does nothing": {
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
