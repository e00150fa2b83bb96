package facadetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// errKilled is how an operator ends that was killed.
var errKilled = errors.New("the operator was killed")

// Kill ends the operator as SIGKILL does, and returns at once. Of a program, the process is killed. Of one of [Start],
// the goroutines are left, as Go can end none from outside, but nothing of them has an effect on the cluster any more:
//
//   - Writes, and those under way, get no answer, and new ones never arrive. A function that writes does not go on.
//   - Reads are answered, as code may hold a mutex meanwhile: client-go does so while it discovers kinds. Watches stay
//     open, and show nothing new.
//   - No handler is called, no line is logged, and no context is cancelled.
//
// The remaining goroutines end with [Runner.Stop], or with the test.
//
// The error of a killed operator says so, and does not fail the test; its exit code is -1. Another operator may be
// started at once, as after the crash of a pod.
func (r *Runner) Kill() {
	r.told = true
	r.gate.shut()
	if r.kill != nil {
		r.kill()
	}
}

// gate is what all that an operator does has to pass. Nobody passes after a kill.
type gate struct {
	once, again      sync.Once
	killed, released chan struct{}
}

func newGate() *gate { return &gate{killed: make(chan struct{}), released: make(chan struct{})} }

func (g *gate) shut() { g.once.Do(func() { close(g.killed) }) }

// release lets those go who wait for ever. They have not passed.
func (g *gate) release() { g.again.Do(func() { close(g.released) }) }

func (g *gate) isShut() bool {
	select {
	case <-g.killed:
		return true
	default:
		return false
	}
}

// pass returns at once, or not before the end.
func (g *gate) pass() error {
	if !g.isShut() {
		return nil
	}
	<-g.released
	return errKilled
}

// around puts the gate before and after the writes that go through a connection, and before what watches show. Plain
// reads pass: what waits for them may hold a mutex, and virtual time would stop.
func (g *gate) around(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if verbOf(r) == "" {
			response, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Has("watch") {
				response.Body = gated{body: response.Body, gate: g}
			}
			return response, err
		}
		if err := g.pass(); err != nil {
			return nil, err
		}
		response, err := next.RoundTrip(r)
		if killed := g.pass(); killed != nil {
			if err == nil {
				_ = response.Body.Close()
			}
			return nil, killed
		}
		return response, err
	})
}

// log is a writer for the lines of the operator. Nothing of a killed one is written.
func (g *gate) log(to io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		if g.isShut() {
			return len(p), nil
		}
		return to.Write(p)
	})
}

// observer puts the gate before and after the calls of handlers.
func (g *gate) observer(next handlers.Observer) handlers.Observer {
	return func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
		if g.pass() != nil {
			return ctx, func(string, error) {}
		}
		observed, ended := next(ctx, call)
		return observed, func(outcome string, err error) {
			if g.pass() != nil {
				return
			}
			ended(outcome, err)
			_ = g.pass() // as this may have been the end
		}
	}
}

// gated is the answer of a watch.
type gated struct {
	body io.ReadCloser
	gate *gate
}

// Read gives nothing to a killed operator.
func (b gated) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if killed := b.gate.pass(); killed != nil {
		return 0, killed
	}
	return n, err
}

// Close closes the answer.
func (b gated) Close() error { return b.body.Close() }
