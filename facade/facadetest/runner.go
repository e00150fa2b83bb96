package facadetest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/standstill"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// Runner is an operator that runs beside a test: in this process, by [Start], or as a separate process, by
// [StartProgram]. It is stopped at the end of the test at the latest. Kopf: KopfRunner.
type Runner struct {
	t           testing.TB
	name        string
	output      *output
	stopTimeout time.Duration

	requestStop   func()        // requests a graceful stop
	kill          func()        // ends the process of a program; nil for Start
	describeStuck func() string // called after the limit: returns where the operator is stuck
	// ready is nil for programs, which do not report their readiness.
	ready    <-chan struct{}
	ended    chan struct{}
	exitCode int   // set before ended is closed
	err      error // set before ended is closed

	calls  calls
	writes writes
	gate   *gate

	stopOnce        sync.Once
	stopError       error // the error of Stop if the operator has not ended in time
	isErrorReported bool  // the test has received the error, so the cleanup must not report it
}

// Start runs an operator in this process, with its startup, login, handlers and cleanup, like [kopf.Main] without a
// command line. It works in a bubble of testing/synctest, with memapi as the API server. Create both in the bubble;
// otherwise, virtual time does not advance.
//
// Against memapi, admission handlers need no settings: the server calls them without a port, a certificate or webhook
// configurations. A Server in the settings of the operator takes precedence.
//
// # Errors
//
// The test fails at its end if the operator ends by itself, ends with an error, or does not stop in time. It does not
// fail if the test has called [Runner.Stop], which returns the error. Kopf: reraise.
//
// In a bubble, virtual time stops if a goroutine waits for a mutex that another one holds while it sleeps, waits for a
// response, or was killed. Such a test would never end: after some seconds of real time, it panics with the stacks of
// the goroutines that wait and those that may hold the mutex.
func Start(t testing.TB, op *kopf.Operator, options ...RunnerOption) *Runner {
	t.Helper()
	o := collectOptions(options)
	if len(o.args)+len(o.env) > 0 {
		t.Fatal("facadetest: Args and Env are for StartProgram: an operator in the process of the test has neither")
	}
	// The guard is registered before the runner. Cleanups run in reverse order, so it also watches the stop of the
	// operator.
	t.Cleanup(standstill.GuardBubble(func(text string) {
		panic(fmt.Sprintf("facadetest: %s: %s\n", t.Name(), text)) // the test itself cannot end any more
	}))
	r := newRunner(t, "the operator", o)
	// Without a logger in the settings, the log is the output that Await and Output use.
	if o.settings.Log.GetSink() == nil {
		to := r.gate.wrapLogWriter(r.output.streamWriter(&r.output.stderr))
		o.settings.Log = logr.FromSlogHandler(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	// Each operator needs its own registry: a second registration of the same metrics would fail.
	if o.settings.Metrics == nil {
		o.settings.Metrics = prometheus.NewRegistry()
	}
	// The last wrapper is the outermost: the gate blocks writes before they are recorded. The caller's configuration is
	// copied, because it can be shared by several operators.
	if o.settings.Config != nil {
		o.settings.Config = rest.CopyConfig(o.settings.Config)
		o.settings.Config.Wrap(r.writes.wrapRoundTrip)
		o.settings.Config.Wrap(r.gate.wrapRoundTrip)
	}
	inner := kit.HooksFromContext(t.Context()).Observer
	observe := r.gate.wrapObserver(handlers.AttemptObserver(r.calls.observeAttempt).WithInner(inner))
	hooks := newWebhooks(o.settings.Config, r.gate)
	// The context of a test is cancelled before its cleanups run. The operator must run until Stop, so it does not
	// inherit that.
	ctx, cancel := context.WithCancel(kit.ContextWithHooks(
		context.WithoutCancel(t.Context()), kit.Hooks{Observer: observe, Webhooks: hooks.inProcess()},
	))
	r.requestStop, r.describeStuck, r.ready = cancel, runningUserFunctions, op.Ready()
	// Time zero of golden files is the moment of readiness.
	go func() {
		select {
		case <-r.ready:
			r.calls.markReady()
		case <-r.ended:
		}
	}()
	// The reviewer is removed before the end is published: a test can then start another operator at once.
	go func() {
		err := op.Run(ctx, o.settings)
		hooks.removeReviewer()
		r.recordEnd(kopf.ExitCode(err), err)
	}()
	return r
}

// collectOptions applies the options to the defaults.
func collectOptions(options []RunnerOption) runnerOptions {
	o := runnerOptions{stopTimeout: defaultStopTimeout}
	for _, option := range options {
		option(&o)
	}
	return o
}

// newRunner returns a runner that stops at the end of the test.
func newRunner(t testing.TB, name string, o runnerOptions) *Runner {
	r := &Runner{t: t, name: name, output: newOutput(), stopTimeout: o.stopTimeout, ended: make(chan struct{}),
		gate: newGate()}
	t.Cleanup(r.finishTest)
	return r
}

// recordEnd publishes the result and closes ended. It is called once, after all of the operator has ended. The error of
// a killed operator replaces that of its remaining goroutines.
func (r *Runner) recordEnd(code int, err error) {
	if r.exitCode, r.err = code, err; r.gate.isShut() {
		r.exitCode, r.err = -1, errKilled
	}
	close(r.ended)
}

// Ready waits until the operator is ready: everything it handles is listed and watched, and its indices are filled. The
// test ends here if the operator ends before. A program does not report its readiness: see [Runner.Await].
func (r *Runner) Ready() {
	r.t.Helper()
	if r.ready == nil {
		r.t.Fatal("facadetest: a program does not say when it is ready: call Await with a text that it writes then")
	}
	select {
	case <-r.ready:
	case <-r.ended:
		r.isErrorReported = true
		r.t.Fatalf("%s has ended before it was ready: %v; its last lines:\n%s", r.name, r.err, r.output.lastLines())
	}
}

// Await waits until the output contains the text, up to the limit. The test ends here if the operator ends first, or
// the text does not appear in time.
func (r *Runner) Await(text string, limit time.Duration) {
	r.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		found, more := r.output.containsText(text)
		if found {
			return
		}
		select {
		case <-more:
		case <-timer.C:
			r.t.Fatalf("%s has not written %q in %s; its last lines:\n%s", r.name, text, limit, r.output.lastLines())
		case <-r.ended:
			if found, _ := r.output.containsText(text); found {
				return
			}
			r.isErrorReported = true
			r.t.Fatalf("%s has ended without %q: %v; its last lines:\n%s", r.name, text, r.err, r.output.lastLines())
		}
	}
}

// Stop stops the operator gracefully, as SIGTERM does, waits for its end, and returns its error: nil after a graceful
// stop. If the operator does not end within the limit, the error has the stacks of its running functions; a process is
// killed then. Further calls return the same error.
func (r *Runner) Stop() error {
	r.t.Helper()
	r.isErrorReported = true
	r.stopOnce.Do(r.stopAndWait)
	return r.endError()
}

// endError returns the error of the operator, or the error that it did not end in time.
func (r *Runner) endError() error {
	if r.stopError != nil {
		return r.stopError
	}
	return r.err
}

// stopAndWait stops the operator and waits for its end, up to the limit. The release comes after the request to stop:
// the remaining goroutines of a killed operator then end without further work.
func (r *Runner) stopAndWait() {
	r.requestStop()
	r.gate.releaseBlocked()
	timer := time.NewTimer(r.stopTimeout)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		r.stopError = fmt.Errorf("%s has not stopped in %s: %s", r.name, r.stopTimeout, r.describeStuck())
	}
}

// finishTest stops the operator at the end of the test, and reports errors that the test has not received.
func (r *Runner) finishTest() {
	r.t.Helper()
	// The operator must be checked before it is stopped: its end is only unexpected if the test has not stopped it.
	early := false
	select {
	case <-r.ended:
		early = !r.isErrorReported
	default:
	}
	r.stopOnce.Do(r.stopAndWait)
	switch {
	case r.isErrorReported:
	case early:
		r.t.Errorf("%s has ended by itself: %v; its last lines:\n%s", r.name, r.err, r.output.lastLines())
	case r.endError() != nil:
		r.t.Errorf("%s has ended with an error: %v; its last lines:\n%s", r.name, r.endError(), r.output.lastLines())
	}
}

// Ended returns a channel that is closed when the operator has ended, whether it was stopped or not. [Runner.Stop]
// returns its error.
func (r *Runner) Ended() <-chan struct{} { return r.ended }

// ExitCode returns the exit code of the program, or that which a program with this operator would have: see
// [kopf.ExitCode]. It is -1 while the operator runs, and for an operator that was killed. Kopf: exit_code.
func (r *Runner) ExitCode() int {
	select {
	case <-r.ended:
		return r.exitCode
	default:
		return -1
	}
}

// Output returns everything that the operator has written so far, to both streams. For an operator of [Start], it is
// the log. Kopf: output.
func (r *Runner) Output() string { return r.output.streamText(&r.output.combined) }

// Stdout returns the standard output so far. Kopf: stdout.
func (r *Runner) Stdout() string { return r.output.streamText(&r.output.stdout) }

// Stderr returns the standard error so far: the log, unless the settings have another logger. Kopf: stderr.
func (r *Runner) Stderr() string { return r.output.streamText(&r.output.stderr) }

// defaultStopTimeout is the default limit for a graceful stop, long enough for a slow machine.
const defaultStopTimeout = 2 * time.Minute

// RunnerOption is an option of [Start] and [StartProgram].
type RunnerOption func(*runnerOptions)

// runnerOptions holds the values of all options.
type runnerOptions struct {
	settings    kopf.RunSettings
	args        []string
	env         []string
	stopTimeout time.Duration
}

// Against sets the connection to the cluster, such as memapi.Config or that of envtest. Default: as for kubectl,
// $KUBECONFIG or ~/.kube/config. A program receives it as a file in $KUBECONFIG.
func Against(config *rest.Config) RunnerOption {
	return func(o *runnerOptions) { o.settings.Config = config }
}

// Settings sets the run settings of the operator, for all settings without an option here. Without a logger in them,
// the log goes to the output. Without a registry for the metrics, the operator gets its own: otherwise, the second test
// would fail to register them. Settings does not apply to programs.
func Settings(settings kopf.RunSettings) RunnerOption {
	return func(o *runnerOptions) {
		// Against and Settings can be passed in any order.
		config := o.settings.Config
		o.settings = settings
		if o.settings.Config == nil {
			o.settings.Config = config
		}
	}
}

// Args appends arguments to the command line of a program, such as "run", "-n", "default".
func Args(args ...string) RunnerOption {
	return func(o *runnerOptions) { o.args = append(o.args, args...) }
}

// Env adds variables to the environment of a program, each as "NAME=value". The program also inherits the environment
// of the test.
func Env(variables ...string) RunnerOption {
	return func(o *runnerOptions) { o.env = append(o.env, variables...) }
}

// StopWithin sets the limit for a graceful stop by [Runner.Stop]. Default: 2 minutes. Kopf: timeout.
func StopWithin(limit time.Duration) RunnerOption {
	return func(o *runnerOptions) { o.stopTimeout = limit }
}

// handlerCallPrefix is the package that calls the functions of users. The part of a stack above it belongs to the
// user's function.
const handlerCallPrefix = "\ngithub.com/kopf-runtime/kopf-runtime/reconcilers/adapters."

// runningUserFunctions returns a message with the stacks of user functions that have not returned. It looks at all
// goroutines, so functions of another operator in the process are included.
func runningUserFunctions() string {
	var found []string
	for stack := range strings.SplitSeq(standstill.AllStacks(), "\n\n") {
		if above, _, called := strings.Cut(stack, handlerCallPrefix); called {
			found = append(found, above)
		}
	}
	if len(found) == 0 {
		return "none of its functions is under way"
	}
	return fmt.Sprintf("%d of its functions have not returned:\n\n%s", len(found), strings.Join(found, "\n\n"))
}
