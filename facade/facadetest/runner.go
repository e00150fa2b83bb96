package facadetest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/standstill"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Runner is an operator that runs beside a test: one of this process, by [Start], or a process of its own, by
// [StartProgram]. It is stopped at the end of the test at the latest. Kopf: KopfRunner.
type Runner struct {
	t      testing.TB
	name   string
	output *output
	limit  time.Duration

	ask   func()        // to stop
	kill  func()        // beside the gate; nil is nothing
	give  func() string // up after that: where it hangs
	ready <-chan struct{}
	ended chan struct{}
	code  int   // once it has ended
	err   error // once it has ended

	calls  calls
	writes writes
	gate   *gate

	stop sync.Once
	hung error // instead of it, if it has not
	told bool  // the test has been given the error
}

// Start runs an operator in this process, with the startup, the login, the handlers and the cleanup, as [kopf.Main]
// does without a command line. It works in a bubble of testing/synctest, with memapi for the API server: make both in
// the bubble, or time stands still there.
//
// Against memapi, admission handlers need no settings: requests to the server are led to them, without a port, a
// certificate or webhook configurations. A Server in the settings of the operator stays in charge.
//
// # Errors
//
// An operator that ends by itself, ends with an error, or does not stop in time fails the test at its end, unless the
// test has called [Runner.Stop], and so has seen the error itself. Kopf: reraise.
//
// In a bubble, virtual time stops if a goroutine waits for a mutex that another one holds while it sleeps, waits for
// an answer, or was killed. Such a test would never end: after some seconds of real time, it panics with the
// goroutines that wait and those that may hold the mutex.
func Start(t testing.TB, op *kopf.Operator, options ...RunnerOption) *Runner {
	t.Helper()
	o := collect(options)
	if len(o.args)+len(o.env) > 0 {
		t.Fatal("facadetest: Args and Env are for StartProgram: an operator in the process of the test has neither")
	}
	t.Cleanup(standstill.Guard(func(text string) {
		panic(fmt.Sprintf("facadetest: %s: %s\n", t.Name(), text)) // the test itself cannot end any more
	}))
	r := newRunner(t, "the operator", o)
	if o.settings.Log.GetSink() == nil {
		to := r.gate.log(r.output.stream(&r.output.errs))
		o.settings.Log = logr.FromSlogHandler(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if o.settings.Metrics == nil {
		o.settings.Metrics = prometheus.NewRegistry()
	}
	if o.settings.Config != nil {
		o.settings.Config = rest.CopyConfig(o.settings.Config)
		o.settings.Config.Wrap(r.writes.around)
		o.settings.Config.Wrap(r.gate.around)
	}
	observe := r.gate.observer(handlers.Observer(r.calls.observe).Around(kit.From(t.Context()).Observer))
	hooks := newWebhooks(o.settings.Config, r.gate)
	ctx, cancel := context.WithCancel(kit.Into(
		context.WithoutCancel(t.Context()), kit.Hooks{Observer: observe, Webhooks: hooks.inProcess()},
	))
	r.ask, r.give, r.ready = cancel, functionsUnderWay, op.Ready()
	go func() {
		select {
		case <-r.ready:
			r.calls.begin()
		case <-r.ended:
		}
	}()
	go func() {
		err := op.Run(ctx, o.settings)
		hooks.end()
		r.end(kopf.ExitCode(err), err)
	}()
	return r
}

func collect(options []RunnerOption) runnerOptions {
	o := runnerOptions{limit: stopWithin}
	for _, option := range options {
		option(&o)
	}
	return o
}

func newRunner(t testing.TB, name string, o runnerOptions) *Runner {
	r := &Runner{t: t, name: name, output: newOutput(), limit: o.limit, ended: make(chan struct{}), gate: newGate()}
	t.Cleanup(r.finish)
	return r
}

// end is called once, when nothing of the operator is left.
func (r *Runner) end(code int, err error) {
	if r.code, r.err = code, err; r.gate.isShut() {
		r.code, r.err = -1, errKilled
	}
	close(r.ended)
}

// Ready waits until the operator is at work: all that it serves is listed and watched, and indices are filled. The test
// ends here if the operator ends before. A program cannot be asked: see [Runner.Await].
func (r *Runner) Ready() {
	r.t.Helper()
	if r.ready == nil {
		r.t.Fatal("facadetest: a program does not say when it is ready: call Await with a text that it writes then")
	}
	select {
	case <-r.ready:
	case <-r.ended:
		r.told = true
		r.t.Fatalf("%s has ended before it was ready: %v; its last lines:\n%s", r.name, r.err, r.output.tail())
	}
}

// Await waits until the output contains the text, for as long as the limit allows. The test ends here if the operator
// ends before, or the text does not come.
func (r *Runner) Await(text string, limit time.Duration) {
	r.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		found, more := r.output.has(text)
		if found {
			return
		}
		select {
		case <-more:
		case <-timer.C:
			r.t.Fatalf("%s has not written %q in %s; its last lines:\n%s", r.name, text, limit, r.output.tail())
		case <-r.ended:
			if found, _ := r.output.has(text); found {
				return
			}
			r.told = true
			r.t.Fatalf("%s has ended without %q: %v; its last lines:\n%s", r.name, text, r.err, r.output.tail())
		}
	}
}

// Stop asks the operator to stop, as SIGTERM does, waits until it has ended, and gives its error: nil after a graceful
// stop. One that does not end in time gives an error that says where its functions hang; a process is killed then. More
// calls give the same.
func (r *Runner) Stop() error {
	r.t.Helper()
	r.told = true
	r.stop.Do(r.halt)
	return r.result()
}

// result is the error by which it has ended, or has not.
func (r *Runner) result() error {
	if r.hung != nil {
		return r.hung
	}
	return r.err
}

// halt is all of stopping.
func (r *Runner) halt() {
	r.ask()
	r.gate.release()
	timer := time.NewTimer(r.limit)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		r.hung = fmt.Errorf("%s has not stopped in %s: %s", r.name, r.limit, r.give())
	}
}

// finish is the end of the test.
func (r *Runner) finish() {
	r.t.Helper()
	early := false
	select {
	case <-r.ended:
		early = !r.told
	default:
	}
	r.stop.Do(r.halt)
	switch {
	case r.told:
	case early:
		r.t.Errorf("%s has ended by itself: %v; its last lines:\n%s", r.name, r.err, r.output.tail())
	case r.result() != nil:
		r.t.Errorf("%s has ended with an error: %v; its last lines:\n%s", r.name, r.result(), r.output.tail())
	}
}

// Ended is closed when the operator has ended, be it stopped or by itself; [Runner.Stop] gives its error then.
func (r *Runner) Ended() <-chan struct{} { return r.ended }

// ExitCode is that of the program, or what a program of this operator would have: see [kopf.ExitCode]. It is -1 as long
// as the operator runs, and for a program that was killed. Kopf: exit_code.
func (r *Runner) ExitCode() int {
	select {
	case <-r.ended:
		return r.code
	default:
		return -1
	}
}

// Output is all that the operator has written so far, to both streams. That of [Start] is its log. Kopf: output.
func (r *Runner) Output() string { return r.output.text(&r.output.all) }

// Stdout is what it has written to that so far. Kopf: stdout.
func (r *Runner) Stdout() string { return r.output.text(&r.output.out) }

// Stderr is what it has written to that so far: the log, if nothing else was set. Kopf: stderr.
func (r *Runner) Stderr() string { return r.output.text(&r.output.errs) }
