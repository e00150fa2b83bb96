package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/genuine"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/scenarios"
)

const (
	kopfName = "kopf"
	dynamic  = "dynamic"
)

// prepare builds the operators, and gets Kopf if it can be had.
func (o options) prepare(ctx context.Context, folder string, progress io.Writer) ([]scenarios.Contender, error) {
	var ready []scenarios.Contender
	names := o.contenders
	if slices.Contains(names, kopfName) {
		python, err := genuine.Folder()
		switch {
		case err == nil:
			script := filepath.Join(o.root, "test", "yardstick", "operators", "kopf", "handlers.py")
			args := []string{filepath.Join(python, "bin", "python"), script}
			kopf := scenarios.Contender{Name: kopfName, Args: args}
			if o.kopfIfPossible {
				kopf.Skips = []string{"pods"} // what it takes for its indices grows faster than the objects do
			}
			ready = append(ready, kopf)
		case !o.kopfIfPossible:
			return nil, err
		default:
			say(progress, "skipped: kopf, %v", err)
		}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == kopfName })
	}
	if len(names) == 0 {
		return ready, nil
	}
	say(progress, "building the operators; the first time waits for the compiler")
	// A folder that ends in a slash gets a program for each package.
	build := exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator),
		"./test/yardstick/operators/...")
	build.Dir, build.Stdout, build.Stderr = o.root, progress, progress
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the operators: %w", err)
	}
	var built []scenarios.Contender
	for _, name := range names {
		program, variant, _ := strings.Cut(name, "-")
		args := []string{filepath.Join(folder, program), variant}
		built = append(built, scenarios.Contender{Name: name, Args: args, Dynamic: variant == dynamic})
	}
	return append(built, ready...), nil
}
