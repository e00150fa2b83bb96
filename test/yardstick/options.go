package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/scenarios"
)

const usage = `yardstick measures whole operators side by side on one control plane.

  make figures NAME=yardstick                                       all scenarios, all contenders: an hour or more
  make figures NAME=yardstick SCENARIOS=pods N=50000                one scenario, with more objects
  make figures NAME=yardstick SCENARIOS=changes N=20000 SIZE=2048   objects outweigh programs: compare memory
  make figures NAME=yardstick CONTENDERS=ours-typed,byhand-typed ROUNDS=5

Scenarios, with their numbers of objects:
%s
Contenders:
  ours-dynamic     this framework, with objects as maps
  byhand-dynamic   controller-runtime alone, with objects as maps
  ours-typed       this framework, with a Go type
  byhand-typed     controller-runtime alone, with a Go type
  minimal          examples/01-minimal as it is, in idle alone
  empty            a manager of controller-runtime with nothing in it, in idle alone
  kopf             genuine Kopf; unless it is named, it is left out where Python or its packages cannot be had, and
                   in pods, where it takes minutes for 10,000: try CONTENDERS=ours-typed,kopf SCENARIOS=pods N=1000

Contenders take turns, round by round. A ratio is taken within a round; printed are the median over the rounds and,
in parentheses, the least and the greatest: 1.12 (1.05–1.20). Quote ratios, never the absolute medians behind them,
and say how busy the machine was, as printed at the beginning and at the end.

Flags:
`

// all selects every scenario, or every available contender.
const all = "all"

// contenders lists the names of all contenders in the order of printing.
var contenders = []string{
	"ours-dynamic", "byhand-dynamic", "ours-typed", "byhand-typed", minimalName, emptyName, kopfName,
}

type options struct {
	assets, root, logs    string
	scenarios             []scenarios.Scenario
	contenders            []string
	kopfIfPossible        bool
	objects, size, rounds int // zero objects: the default of the scenario
	rate                  int
	window, idleTime      time.Duration
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var wantedScenarios, wantedContenders string
	flags := flag.NewFlagSet("yardstick", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(stderr, usage, describe(scenarios.All))
		flags.PrintDefaults()
	}
	flags.StringVar(&wantedScenarios, "scenarios", all, "`names` of scenarios, with commas in between")
	flags.StringVar(&wantedContenders, "contenders", all, "`names` of contenders, with commas in between")
	flags.IntVar(&o.objects, "n", 0, "how many objects; 0 is what each scenario has by itself")
	flags.IntVar(&o.size, "size", 300, "the `bytes` of an object, about, without its metadata; pods have 2.7 KB")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each contender takes its turn")
	flags.DurationVar(&o.window, "window", 30*time.Second, "for how long timers tick, changes come, and programs idle")
	flags.DurationVar(&o.idleTime, "rest", 5*time.Second,
		"for how long an operator does nothing before its memory is steady")
	flags.IntVar(&o.rate, "rate", 100, "how many changes come per second in latency")
	flags.StringVar(&o.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"),
		"the `folder` with etcd, kube-apiserver and kubectl: make assets prints it")
	flags.StringVar(&o.root, "root", ".", "the `folder` of this repository")
	flags.StringVar(&o.logs, "logs", "", "an existing `folder` in which the operators' logs stay; by default they go")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.scenarios, err = chosenScenarios(wantedScenarios); err != nil {
		return o, err
	}
	o.kopfIfPossible = wantedContenders == all
	if o.contenders, err = selectNames(wantedContenders, contenders, "contender"); err != nil {
		return o, err
	}
	return o, o.check(flags.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q; --help lists the flags", rest[0])
	case o.objects < 0 || o.size < 1 || o.rounds < 1 || o.rate < 1:
		return errors.New("-n, -size, -rounds and -rate are numbers above zero")
	case o.assets == "":
		return errors.New("there is no control plane: use make figures NAME=yardstick, or the folder of make assets")
	}
	return nil
}

// selectNames returns the selected names in the order of the full list.
func selectNames(wanted string, there []string, what string) ([]string, error) {
	if wanted == all || wanted == "" {
		return there, nil
	}
	list := strings.Split(wanted, ",")
	for _, name := range list {
		if !slices.Contains(there, name) {
			return nil, fmt.Errorf("there is no %s %q, but %s", what, name, strings.Join(there, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(there), func(name string) bool { return !slices.Contains(list, name) }), nil
}

func chosenScenarios(wanted string) ([]scenarios.Scenario, error) {
	var there []string
	for _, s := range scenarios.All {
		there = append(there, s.Name)
	}
	list, err := selectNames(wanted, there, "scenario")
	return slices.DeleteFunc(slices.Clone(scenarios.All), func(s scenarios.Scenario) bool {
		return !slices.Contains(list, s.Name)
	}), err
}

func describe(list []scenarios.Scenario) string {
	var text strings.Builder
	for _, s := range list {
		_, _ = fmt.Fprintf(&text, "  %-9s %6d  %s\n", s.Name, s.Objects, s.Description)
	}
	return text.String()
}
