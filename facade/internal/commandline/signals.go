package commandline

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long a repeated signal counts as the first one: `timeout` and `tini -g` send it to the process and
// to its group.
const sameSignal = time.Second

// SignalContext returns a context that ends with SIGTERM or Ctrl-C. A further signal exits with code 1 at once, unless
// it is the same one within a second.
func SignalContext() context.Context {
	received := make(chan os.Signal, 4)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	//nolint:revive // leaving is what the second signal is for
	return untilSignal(received, func() { os.Exit(1) })
}

func untilSignal(received <-chan os.Signal, exit func()) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		first := <-received
		began := time.Now()
		cancel()
		for next := range received {
			if next != first || time.Since(began) > sameSignal {
				exit()
				return
			}
		}
	}()
	return ctx
}
