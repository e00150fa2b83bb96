// Command yardstick measures whole operators side by side on one control plane: ours, the same written by hand on
// controller-runtime, each with a Go type and without, and genuine Kopf.
//
//	go run ./test/yardstick --help
//
// It stands apart from the benchmarks of packages, as what users pay for is a process: its CPU, its memory, its
// requests, and the time until it has done something. Absolute figures depend on the machine and on what else it
// does; therefore contenders take turns, and what is told are ratios within a round.
//
// Neighbours: cluster is the control plane, operators are the contenders, scenarios is what they go through.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = o.run(ctx, os.Stdout, os.Stderr)
	}
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "yardstick:", err)
		os.Exit(1)
	}
}
