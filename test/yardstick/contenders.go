package main

import (
	"context"
	"fmt"
	"io"
	"os"
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

	// What idles beside each other, and where: an example as it is, and a manager with nothing in it.
	minimalName, emptyName = "minimal", "empty"
	idleName               = "idle"
	example                = "01-minimal"
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
		"./test/yardstick/operators/...", "./examples/"+example)
	build.Dir, build.Stdout, build.Stderr = o.root, progress, progress
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as operators are built for their images
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the operators: %w", err)
	}
	var built []scenarios.Contender
	for _, name := range names {
		built = append(built, contender(folder, name))
	}
	return append(built, ready...), nil
}

// contender is one whose program is in the folder.
func contender(folder, name string) scenarios.Contender {
	switch name {
	case minimalName:
		return scenarios.Contender{
			Name: name, Args: []string{filepath.Join(folder, example), "run", "--all-namespaces"}, Plays: idleName,
		}
	case emptyName:
		return scenarios.Contender{Name: name, Args: []string{filepath.Join(folder, name)}, Plays: idleName}
	}
	program, variant, _ := strings.Cut(name, "-")
	return scenarios.Contender{
		Name: name, Args: []string{filepath.Join(folder, program), variant}, Dynamic: variant == dynamic,
	}
}
