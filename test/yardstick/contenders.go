package main

import (
	"context"
	"errors"
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
	kopfName       = "kopf"
	dynamicVariant = "dynamic"

	// The contenders of the scenario idle: an example and an empty manager.
	minimalName, emptyName = "minimal", "empty"
	idleName               = "idle"
	example                = "01-minimal"
)

// prepare builds the operators, and sets up Kopf if it is available.
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
				// The cost of its indices grows faster than the number of objects.
				kopf.SkippedScenarios = []string{"pods"}
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
	if err := o.build(ctx, folder, progress); err != nil {
		return nil, err
	}
	var built []scenarios.Contender
	for _, name := range names {
		built = append(built, contender(folder, name))
	}
	return append(built, ready...), nil
}

// build builds a program in the folder for each operator package.
func (o options) build(ctx context.Context, folder string, progress io.Writer) error {
	say(progress, "building the operators; the first time waits for the compiler")
	built := filepath.Join(folder, "built")
	// A folder that ends in a slash gets a program for each package.
	build := exec.CommandContext(ctx, "go", "build", "-o", built+string(filepath.Separator),
		"./test/yardstick/operators/...", "./examples/"+example)
	build.Dir, build.Stdout, build.Stderr = o.root, progress, progress
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as operators are built for their images
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the operators: %w", err)
	}
	programs, err := os.ReadDir(built)
	if err != nil {
		return fmt.Errorf("listing the operators: %w", err)
	}
	for _, program := range programs {
		if err := unpack(filepath.Join(built, program.Name()), filepath.Join(folder, program.Name())); err != nil {
			return err
		}
	}
	return nil
}

// writeSize is the write size with which container images are unpacked on a node.
const writeSize = 32 << 10

// unpack copies a program as a node does when it unpacks an image. From Linux 6.18 on, the first access to a file's
// page makes its whole folio resident. A linker's output has folios of 64 KiB to 2 MiB, different with each build, so
// the resident memory of the same program varied by 4 MB.
func unpack(from, to string) (err error) {
	program, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", from, err)
	}
	defer program.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", from, err)
	}
	// The wrappers hide ReadFrom and WriteTo, which would copy everything at once.
	_, err = io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{program}, make([]byte, writeSize))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("unpacking %s: %w", from, err)
	}
	return nil
}

// contender returns the contender whose program is in the folder.
func contender(folder, name string) scenarios.Contender {
	switch name {
	case minimalName:
		return scenarios.Contender{
			Name: name, Args: []string{filepath.Join(folder, example), "run", "--all-namespaces"},
			OnlyScenario: idleName,
		}
	case emptyName:
		return scenarios.Contender{Name: name, Args: []string{filepath.Join(folder, name)}, OnlyScenario: idleName}
	}
	program, variant, _ := strings.Cut(name, "-")
	return scenarios.Contender{
		Name: name, Args: []string{filepath.Join(folder, program), variant}, IsDynamic: variant == dynamicVariant,
	}
}
