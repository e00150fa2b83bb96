// Command yardstick measures whole operators side by side on one control plane: ours, the same written by hand on
// controller-runtime, each with a Go type and without, and genuine Kopf.
//
//	go run ./test/yardstick --help
//
// It complements the benchmarks of packages, because users pay for a process: its CPU, memory and requests, and the
// time until it has reacted. Absolute figures depend on the machine and its load. Therefore contenders take turns, and
// the results are ratios within a round.
//
// Neighbours: cluster is the control plane, operators are the contenders, scenarios defines the measurements.
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
