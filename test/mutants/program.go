package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// testTimeMargin is how much longer than ever a test may take until it counts as hanging, beside five times as
	// long: others use the machine as well.
	testTimeMargin = 10 * time.Second
	// memoryLimit is what a test program may ask for, in KiB: some changes make it ask for ever more.
	memoryLimit = 6 << 20
)

// program is the tests of one package, with all changes of the target in it.
type program struct {
	file, dir string
	// times are how long each test takes by itself.
	times map[string]time.Duration
	// testsByMutant are the tests that reach a change.
	testsByMutant map[int][]string
}

// build is nil if the package has no tests.
func (c *campaign) build(ctx context.Context, path string) (*program, error) {
	listed, err := c.module.list(ctx, "-json=Dir,TestGoFiles,XTestGoFiles", path)
	if err != nil || len(listed[0].TestGoFiles)+len(listed[0].XTestGoFiles) == 0 {
		return nil, err
	}
	file := filepath.Join(c.folder, "program.test")
	_, err = c.module.output(ctx, "go", "test", "-c", "-vet=off", "-overlay", c.overlay, "-o", file, path)
	if err != nil {
		return nil, err
	}
	return &program{
		file: file, dir: listed[0].Dir, times: map[string]time.Duration{}, testsByMutant: map[int][]string{},
	}, nil
}

// record runs every test by itself without a change and records the changes that it reaches. Tests that fail are left
// out.
func (p *program) record(ctx context.Context, c *campaign) error {
	list, err := p.run(ctx, time.Minute, nil, "-test.list", "^(Test|Example|Fuzz)")
	if err != nil {
		return fmt.Errorf("listing the tests in %s: %w: %s", p.dir, err, list)
	}
	tests := strings.Fields(string(list))
	var lock sync.Mutex
	c.inParallel(len(tests), func(i int) {
		name := tests[i]
		records := filepath.Join(c.folder, name+".reached")
		began := time.Now()
		_, err := p.run(ctx, time.Minute, []string{"MUTANTS_RECORD=" + records}, only(name)...)
		took := time.Since(began)
		text, _ := os.ReadFile(records)
		_ = os.Remove(records)
		lock.Lock()
		defer lock.Unlock()
		if err != nil {
			if ctx.Err() == nil {
				say("%s in ./%s is left out: it fails when it runs alone", name, c.module.relative(p.dir))
			}
			return
		}
		p.times[name] = took
		for _, field := range strings.Fields(string(text)) {
			id, _ := strconv.Atoi(field)
			p.testsByMutant[id] = append(p.testsByMutant[id], name)
		}
	}, func(done int) { c.progress("%d of %d tests recorded", done, len(tests), p) })
	for _, names := range p.testsByMutant {
		slices.SortStableFunc(names, func(a, b string) int { return int(p.times[a] - p.times[b]) })
	}
	return nil
}

// notices says whether a test fails with the change. Tests run together as long as they are quick, as starting a
// program takes time as well.
func (p *program) notices(ctx context.Context, id int) bool {
	names := p.testsByMutant[id]
	for len(names) > 0 && ctx.Err() == nil {
		took, n := time.Duration(0), 0
		for n < len(names) && (n == 0 || took+p.times[names[n]] < time.Second) {
			took += p.times[names[n]]
			n++
		}
		_, err := p.run(ctx, testTimeMargin+5*took, []string{"MUTANT=" + strconv.Itoa(id)}, only(names[:n]...)...)
		if err != nil {
			return ctx.Err() == nil
		}
		names = names[n:]
	}
	return false
}

func only(names ...string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return []string{"-test.failfast", "-test.run", "^(" + strings.Join(quoted, "|") + ")$"}
}

// run starts the program, in its package's folder as go test does.
func (p *program) run(ctx context.Context, limit time.Duration, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	limited := fmt.Sprintf(`ulimit -v %d 2>/dev/null; exec "$0" "$@"`, memoryLimit)
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, p.file}, args...)...)
	command.Dir, command.Env = p.dir, append(os.Environ(), env...)
	command.WaitDelay = time.Second
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it did not end within %v: %w", limit, err)
	}
	return out.Bytes(), err
}
