package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// operatorFolder is the folder of the test program for cases that no example covers.
const operatorFolder = "operator"

// programs holds the built programs. Each is built once, and one after the other because linking uses all cores.
var programs = struct {
	build func(folder string) error
	end   func()
	done  sync.WaitGroup
	dir   string

	lock sync.Mutex
	made map[string]func() error // by folder
}{made: map[string]func() error{}}

// buildAhead builds programs in the background while specs wait for the API server.
func buildAhead(folders ...string) error {
	dir, err := os.MkdirTemp("", "e2e-programs-")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	programs.dir, programs.end = dir, cancel
	programs.build = func(folder string) error { return goBuild(ctx, folder, programPath(folder)) }
	programs.done.Go(func() {
		for _, folder := range folders {
			if ctx.Err() == nil {
				_ = buildOnce(folder) // the caller of build reports the error
			}
		}
	})
	return nil
}

// buildOnce builds the program of a folder unless it is already built.
func buildOnce(folder string) error {
	programs.lock.Lock()
	once, ok := programs.made[folder]
	if !ok {
		once = sync.OnceValue(func() error { return programs.build(folder) })
		programs.made[folder] = once
	}
	programs.lock.Unlock()
	return once()
}

func programPath(folder string) string {
	return filepath.Join(programs.dir, strings.ReplaceAll(filepath.ToSlash(folder), "/", "_"), "operator")
}

func goBuild(ctx context.Context, folder, program string) error {
	// Without the state of the repository and the debugger's data, linking is faster.
	quick := []string{"-buildvcs=false", "-ldflags=-s -w"}
	args := append(append([]string{"build"}, quick...), "-o", program, ".")
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the folders are ours
	command.Dir = folder                               // the folder can belong to another module
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", folder, err)
	}
	command.Env = append(os.Environ(), "GOWORK="+workspaceOf(absolute))
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the program in %s: %w\n%s", folder, err, output)
	}
	return nil
}

// build returns the path of the program of a folder.
func build(folder string) string {
	GinkgoHelper()
	GinkgoWriter.Println("building", folder)
	Expect(buildOnce(folder)).To(Succeed())
	return programPath(folder)
}

// endBuilds stops running builds and removes all programs.
func endBuilds() error {
	if programs.end == nil {
		return nil
	}
	programs.end()
	programs.done.Wait()
	return os.RemoveAll(programs.dir)
}

// workspaceOf returns the go.work beside the go.mod of a folder with an absolute path: released modules do not have a
// replace. Without one, workspaces around the repository do not apply.
func workspaceOf(folder string) string {
	for dir := folder; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
			break
		}
		return filepath.Join(dir, "go.work")
	}
	return "off"
}
