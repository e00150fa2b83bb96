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

// own is the program that is killed, and does what no example does.
const own = "operator"

// programs are built once each, one after the other: linking them takes as long as playing them.
var programs = struct {
	build func(folder string) error
	end   func()
	done  sync.WaitGroup
	dir   string

	lock sync.Mutex
	made map[string]func() error // by folder
}{made: map[string]func() error{}}

// buildAhead begins to build what specs will ask for, while they wait for the API server.
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
				_ = made(folder) // which those tell who ask for it
			}
		}
	})
	return nil
}

// made builds the program of a folder, unless that is done.
func made(folder string) error {
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
	command := exec.CommandContext(ctx, "go", "build", "-o", program, ".") //nolint:gosec // the folders are ours
	command.Dir = folder                                                   // which may be of another module
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

// build gives the program of a folder.
func build(folder string) string {
	GinkgoHelper()
	GinkgoWriter.Println("building", folder)
	Expect(made(folder)).To(Succeed())
	return programPath(folder)
}

// endBuilds removes all programs.
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
