// Command mutants measures how strong the tests are: it changes the code in small ways and asks whether a test notices.
//
//	go run ./test/mutants [-since COMMIT | -sample N [-seed S]] [-for 60s] [-tests all|own|PACKAGES] PACKAGES
//
// It stands apart from the mutation testers that exist, as those run either the tests of the changed package alone, or
// all tests of the module for each change, and here much of an engine is shown by tests a package higher. All changes
// are compiled at once, each behind a switch, and each test program is built once. It is recorded which of its tests
// reach which change, and a change is tried with those that reach it, the quick ones first. The tree is never touched:
// the changed files are an overlay of the build.
//
// Changes that no test can notice are listed in equivalent.txt, with the reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

type options struct {
	root, equivalent, baseCommit, tests   string
	limit                                 time.Duration
	workers, sample                       int
	seed                                  uint64
	minKilledPercent, maxUnreachedPercent int
}

var (
	errWeak  = errors.New("there are changes that no test notices")
	errStale = errors.New("the list of equivalent changes is out of date")
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the folder of the module")
	flag.StringVar(&o.equivalent, "equivalent", "test/mutants/equivalent.txt", "the list of unnoticeable changes")
	flag.StringVar(&o.baseCommit, "since", "", "only lines changed since this commit; then every survivor is a failure")
	flag.StringVar(&o.tests, "tests", "all", "which tests: all that import the package, its own, or those of packages")
	flag.IntVar(&o.sample, "sample", 0, "try only so many changes, chosen at random; 0 is all")
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of the sample")
	flag.DurationVar(&o.limit, "for", 0, "stop after this time, and list the untried changes; 0 is never")
	flag.IntVar(&o.workers, "workers", max(1, runtime.NumCPU()/2), "how many test programs run at the same time")
	flag.IntVar(&o.minKilledPercent, "killed", 95,
		"how many percent of the changes that tests reach have to be noticed")
	flag.IntVar(&o.maxUnreachedPercent, "unreached", 5, "how many percent of the changes may be reached by no test")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, patterns []string) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	module := module{root: root}
	changed, err := o.changes(ctx, module)
	if err != nil || o.baseCommit != "" && len(changed) == 0 {
		return err
	}
	wanted := selection{changedLines: changed}
	if wanted.equivalents, err = readEquivalents(filepath.Join(root, o.equivalent)); err != nil {
		return err
	}
	packages, err := module.packages(ctx, patterns)
	if err != nil {
		return err
	}
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
	}
	return o.measure(ctx, module, packages, wanted)
}

// changes are the lines that differ from the commit of -since, by file; it says so if there are none.
func (o options) changes(ctx context.Context, m module) (lines, error) {
	if o.baseCommit == "" {
		return nil, nil
	}
	changed, err := m.changedLines(ctx, o.baseCommit)
	if err == nil && len(changed) == 0 {
		say("nothing was changed since %s", o.baseCommit)
	}
	return changed, err
}

// selection selects the changes of a package that are tried.
type selection struct {
	equivalents  equivalents
	changedLines lines // nil is all
}

func (s selection) of(mutants []*mutant) []*mutant {
	mutants = s.equivalents.without(mutants)
	if s.changedLines != nil {
		mutants = s.changedLines.only(mutants)
	}
	return mutants
}

func (o options) measure(ctx context.Context, m module, packages []listedPackage, wanted selection) error {
	targets, err := m.targets(ctx, packages, wanted)
	if err != nil {
		return err
	}
	if o.sample > 0 {
		takeSample(targets, o.sample, o.seed)
	}
	targets = slices.DeleteFunc(targets, func(one *target) bool { return len(one.mutants) == 0 })
	if err := m.try(ctx, targets, o); err != nil {
		return fmt.Errorf("trying the changes: %w", err)
	}
	var report report
	for _, target := range targets {
		report.add(os.Stdout, m.relative(target.dir), target.mutants)
	}
	report.table(os.Stdout)
	return o.verdict(report, wanted.equivalents.stale(m.root))
}

// targets loads the packages with the wanted changes of each.
func (m module) targets(ctx context.Context, packages []listedPackage, wanted selection) ([]*target, error) {
	var targets []*target
	firstID := 1
	for _, one := range packages {
		if wanted.changedLines != nil && !wanted.changedLines.touch(m.relative(one.Dir)) {
			continue
		}
		target, err := m.load(ctx, one, firstID)
		if err != nil {
			return nil, err
		}
		firstID += len(target.mutants)
		target.mutants = wanted.of(target.mutants)
		targets = append(targets, target)
	}
	return targets, nil
}

// verdict returns an error if the tests are too weak or if the list is out of date. Only the loaded files can show the
// latter.
func (o options) verdict(r report, stale []string) error {
	var err error
	for _, one := range stale {
		say("%s: is listed as equivalent, but the code does not have it any more: remove or correct it", one)
		err = errStale
	}
	var weak bool
	switch {
	case o.baseCommit != "":
		weak = r.survivors() > 0
	case o.sample > 0: // too few changes of each package
		weak = r.sum().isWeak(o.minKilledPercent, o.maxUnreachedPercent)
	default:
		weak = r.weak(o.minKilledPercent, o.maxUnreachedPercent)
	}
	if weak {
		err = errors.Join(errWeak, err)
	}
	return err
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "mutants: "+format+"\n", args...) }
