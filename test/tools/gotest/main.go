// Command gotest runs go test, and says what it is at while that takes long.
//
//	gotest [-every 30s] [-C folder] [-go program] -- ARGUMENTS OF GO TEST
//
// Go test keeps the output of a package until the package has ended, and of the packages before it. This one shows the
// same lines for packages and for tests that fail, as soon as they end, and from time to time a line with what is
// running. It exits as go test does.
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
	every := flag.Duration("every", 30*time.Second, "how often to say what is running")
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
