package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is the one whose packages are changed and tested.
type module struct{ root string }

type listedPackage struct {
	Dir, ImportPath, Export         string
	GoFiles                         []string
	TestGoFiles, XTestGoFiles, Deps []string
}

func (m module) relative(path string) string {
	relative, err := filepath.Rel(m.root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(relative)
}

func (m module) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = m.root
	return command
}

// output returns the stdout of a command; its error contains the stderr.
func (m module) output(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := m.command(ctx, name, args...)
	var out, failure bytes.Buffer
	command.Stdout, command.Stderr = &out, &failure
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err, failure.Bytes())
	}
	return out.Bytes(), nil
}

func (m module) list(ctx context.Context, args ...string) ([]listedPackage, error) {
	out, err := m.output(ctx, "go", append([]string{"list"}, args...)...)
	if err != nil {
		return nil, err
	}
	var all []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listedPackage
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("reading what go list says: %w", err)
		}
		all = append(all, one)
	}
}

// packages returns the packages of patterns that contain code; packages that exist only for tests are left out.
func (m module) packages(ctx context.Context, patterns []string) ([]listedPackage, error) {
	all, err := m.list(ctx, append([]string{"-json=Dir,ImportPath,GoFiles"}, patterns...)...)
	return slices.DeleteFunc(all, func(p listedPackage) bool {
		return len(p.GoFiles) == 0 || strings.HasSuffix(p.ImportPath, "test") ||
			strings.HasSuffix(p.ImportPath, "/declared")
	}), err
}

// testPackages returns the packages whose tests import one of those at the paths, those with the fewest dependencies
// first: they are built the fastest and know it best. Those under test/ show things as a whole and take minutes. Which
// is "all", "own", or patterns of packages, with spaces between them, which are tried beside the paths' own.
func (m module) testPackages(ctx context.Context, paths []string, which string) ([]string, error) {
	patterns := slices.Concat(paths, strings.Fields(which))
	switch which {
	case "own":
		patterns = paths
	case "all":
		patterns = []string{"./..."}
	}
	all, err := m.list(ctx, append([]string{"-test", "-json=Dir,ImportPath,Deps"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p listedPackage) bool {
		dir := m.relative(p.Dir)
		apart := strings.HasPrefix(dir, "test/") || strings.HasPrefix(dir, "examples/")
		tested, isTest := strings.CutSuffix(p.ImportPath, ".test")
		switch {
		case !isTest:
			return true
		case slices.Contains(paths, tested):
			return false
		case apart && which == "all" || needsServer(p.Dir):
			return true
		}
		return !slices.ContainsFunc(p.Deps, func(dep string) bool {
			return slices.Contains(paths, strings.Split(dep, " ")[0])
		})
	})
	slices.SortStableFunc(all, func(a, b listedPackage) int { return len(a.Deps) - len(b.Deps) })
	var names []string
	for _, one := range all {
		names = append(names, strings.TrimSuffix(one.ImportPath, ".test"))
	}
	return names, nil
}

// needsServer says whether the tests in a folder start a real API server.
func needsServer(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte(`"sigs.k8s.io/controller-runtime/pkg/envtest"`))
	})
}
