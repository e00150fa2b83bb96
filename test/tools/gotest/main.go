// Command gotest runs go test and reports its progress during long runs.
//
//	gotest [-every 30s] [-C folder] [-go program] -- ARGUMENTS OF GO TEST
//
// Go test keeps the output of a package until the package has ended, and of the packages before it. This one shows the
// same lines for packages and for failed tests as soon as they end, and periodically a line with the running tests. It
// has the exit code of go test.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"
)

func main() {
	every := flag.Duration("every", 30*time.Second, "how often to list the running tests")
	folder := flag.String("C", ".", "where to run go test")
	program := flag.String("go", "go", "which go")
	flag.Parse()
	os.Exit(run(*program, *folder, *every, flag.Args()))
}

func run(program, folder string, every time.Duration, args []string) (code int) {
	command := exec.Command(program, append([]string{"test", "-json"}, args...)...)
	command.Dir, command.Stderr = folder, os.Stderr
	events, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest: running go test:", err)
		return 2
	}
	newReport(os.Stdout, time.Now).follow(events, every)
	var exit *exec.ExitError
	switch err := command.Wait(); {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "gotest: go test ended:", err)
		return 2
	}
	return 0
}
