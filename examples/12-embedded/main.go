// Command 12-embedded is a program with work of its own that runs two operators in the same process.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func main() {
	namespace := flag.String("n", "default", "the namespace that the operators serve")
	flag.Parse()
	// The program handles signals, flags and the log itself.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	err := serve(ctx, kopf.Settings{Namespaces: []string{*namespace}})
	stop()
	if err != nil {
		slog.Error("The program failed", "err", err)
		os.Exit(1)
	}
}

// serve runs two operators. The first one is stopped when it has reported an object; the other one goes on.
func serve(ctx context.Context, settings kopf.Settings) error {
	names := make(chan string)
	telling := kopf.New("telling.kopf.dev", settings)
	kopf.ForResource(telling, "kopfexamples").On("send", kopf.CreateUpdateResume(), send(names))
	noting := kopf.New("noting.kopf.dev", settings)
	kopf.ForResource(noting, "kopfexamples").OnUpdate("note", note)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	until, enough := context.WithCancel(ctx)
	defer enough()
	var running sync.WaitGroup
	var errs [2]error
	running.Go(func() {
		if errs[0] = telling.Run(until); errs[0] != nil {
			stop() // here, both operators are needed
		}
	})
	running.Go(func() {
		defer stop()
		errs[1] = noting.Run(ctx)
	})

	for _, op := range []*kopf.Operator{telling, noting} {
		select {
		case <-ctx.Done():
		case <-op.Ready():
			slog.Info("An operator is at work")
		}
	}
	select { // the program's own work
	case <-ctx.Done():
	case name := <-names:
		slog.Info("Got an object; the first operator is not needed any more", "object", name)
		enough()
	}
	running.Wait()
	slog.Info("Both operators have ended")
	return errors.Join(errs[:]...)
}

// send passes the name of the object to the program, and waits until the program receives it.
func send(names chan<- string) func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	return func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		select {
		case names <- c.Object.GetName():
		case <-ctx.Done():
		}
		return ctx.Err()
	}
}

// note is still called after the other operator has ended.
func note(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	log.FromContext(ctx).Info("Noted", "object", c.Object.GetName())
	return nil
}
