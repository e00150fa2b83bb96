package commandline

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// repeatedSignalTime is the time during which a repeated signal counts as the first one. Programs like timeout and tini
// -g send a signal both to the process and to its group.
const repeatedSignalTime = time.Second

// SignalContext returns a context that ends with SIGTERM or Ctrl-C. A further signal exits with code 1 immediately,
// unless it is the same signal within a second. It is the way out if the shutdown hangs.
func SignalContext() context.Context {
	// Package signal drops signals if the channel is full.
	received := make(chan os.Signal, 4)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	//nolint:revive // leaving is what the second signal is for
	return untilSignal(received, func() { os.Exit(1) })
}

// untilSignal is SignalContext with replaceable signals and exit, for tests.
func untilSignal(received <-chan os.Signal, exit func()) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		first := <-received
		// The goroutine runs until the process exits.
		began := time.Now()
		cancel()
		// Another signal, or the same one later, means that the user does not want to wait.
		for next := range received {
			if next != first || time.Since(began) > repeatedSignalTime {
				exit()
				return
			}
		}
	}()
	return ctx
}
