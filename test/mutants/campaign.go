package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// campaign tries the changes of packages.
type campaign struct {
	module       module
	targets      []*target
	folder       string
	overlay      string
	workers      int
	lastProgress time.Time
}

// try builds the tests that import one of the packages, one program after the other, until every change is noticed. It
// does not fail when the time is over: the remaining changes are untried.
func (m module) try(ctx context.Context, targets []*target, o options) error {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return fmt.Errorf("making a folder for test programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	c := &campaign{module: m, targets: targets, folder: folder, workers: o.workers, lastProgress: time.Now()}
	if c.overlay, err = writeOverlay(folder, targets); err != nil {
		return err
	}
	testing, err := m.testPackages(ctx, pathsOf(targets), o.tests)
	if err != nil {
		return err
	}
	for _, path := range testing {
		if len(c.alive()) == 0 {
			break
		}
		if err := c.tryWith(ctx, path); err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			say("the time is over")
			return nil
		}
	}
	for _, one := range c.alive() {
		if one.outcome == untried {
			one.outcome = unreached
		}
	}
	return nil
}

func (c *campaign) alive() []*mutant {
	var alive []*mutant
	for _, target := range c.targets {
		for _, one := range target.mutants {
			if one.alive() {
				alive = append(alive, one)
			}
		}
	}
	return alive
}

func (c *campaign) tryWith(ctx context.Context, path string) error {
	program, err := c.build(ctx, path)
	if err != nil || program == nil {
		return err
	}
	defer func() { _ = os.Remove(program.file) }()
	if err := program.record(ctx, c); err != nil {
		return err
	}
	var reached []*mutant
	for _, one := range c.alive() {
		if len(program.testsByMutant[one.id]) > 0 {
			reached = append(reached, one)
		}
	}
	c.inParallel(len(reached), func(i int) {
		one := reached[i]
		if program.notices(ctx, one.id) {
			one.outcome = killed
		} else if ctx.Err() == nil {
			one.outcome = survived
			one.tests = append(one.tests, c.module.relative(program.dir))
		}
	}, func(done int) {
		c.progress("%d of %d changes tried that its tests reach", done, len(reached), program)
	})
	return nil
}

// inParallel runs n tasks on all workers, and calls its last argument with the number of finished tasks after each.
func (c *campaign) inParallel(n int, do, tell func(i int)) {
	var group sync.WaitGroup
	var lock sync.Mutex
	next, done := 0, 0
	for range c.workers {
		group.Go(func() {
			for {
				lock.Lock()
				i := next
				next++
				lock.Unlock()
				if i >= n {
					return
				}
				do(i)
				lock.Lock()
				done++
				tell(done)
				lock.Unlock()
			}
		})
	}
	group.Wait()
}

// progress prints the progress, at most every five seconds.
func (c *campaign) progress(format string, done, all int, with *program) {
	if now := time.Now(); now.Sub(c.lastProgress) > 5*time.Second || c.lastProgress.IsZero() {
		c.lastProgress = now
		say("./%s: "+format, c.module.relative(with.dir), done, all)
	}
}
