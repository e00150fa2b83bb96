package facadetest

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// errKilled is the error of an operator that was killed.
var errKilled = errors.New("the operator was killed")

// Kill ends the operator like SIGKILL, and returns at once. For a program, it kills the process. For an operator of
// [Start], the goroutines stay, as Go cannot end them from outside, but they have no further effect on the cluster:
//
//   - Writes do not return, neither new ones nor those in progress, and new ones do not reach the server. A function
//     that writes does not continue.
//   - Reads return, because code can hold a mutex meanwhile: client-go does so while it discovers kinds. Watches stay
//     open without new events.
//   - No handler is called, no line is logged, and no context is cancelled.
//
// The remaining goroutines end with [Runner.Stop], or with the test.
//
// The error of a killed operator is not a failure of the test; its exit code is -1. Another operator can be started at
// once, as after the crash of a pod.
func (r *Runner) Kill() {
	// A killed operator must not fail the test at its end.
	r.isErrorReported = true
	r.gate.blockAll()
	if r.kill != nil {
		r.kill()
	}
}

// gate blocks the effects of an operator after it was killed. Writes, events and handler calls pass through it. The two
// contexts end in this order: killed blocks, and released lets blocked goroutines end with errKilled, so that they do
// not outlive the test.
type gate struct {
	killed, released         context.Context //nolint:containedctx // they are two signals
	blockAll, releaseBlocked context.CancelFunc
}

func newGate() *gate {
	g := &gate{}
	g.killed, g.blockAll = context.WithCancel(context.Background())
	g.released, g.releaseBlocked = context.WithCancel(context.Background())
	return g
}

// isShut reports whether the operator was killed. It never blocks.
func (g *gate) isShut() bool { return g.killed.Err() != nil }

// waitIfShut returns nil at once unless the operator was killed. In that case, it blocks until the release and returns
// an error.
func (g *gate) waitIfShut() error {
	if !g.isShut() {
		return nil
	}
	<-g.released.Done()
	return errKilled
}

// wrapRoundTrip returns a transport that blocks writes before and after the request, and the events of watches. Plain
// reads pass: their caller can hold a mutex, and waiting for a mutex would stop virtual time.
func (g *gate) wrapRoundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if writeVerbOf(r) == "" {
			response, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Has("watch") {
				response.Body = gatedBody{response.Body, g}
			}
			return response, err
		}
		if err := g.waitIfShut(); err != nil {
			return nil, err
		}
		response, err := next.RoundTrip(r)
		// The operator was killed while the request was in progress. The server may have executed it, but the operator
		// must not see the response.
		if killed := g.waitIfShut(); killed != nil {
			if err == nil {
				_ = response.Body.Close()
			}
			return nil, killed
		}
		return response, err
	})
}

// wrapLogWriter returns a writer that discards the lines of a killed operator. It does not block: loggers hold a mutex
// while they write.
func (g *gate) wrapLogWriter(to io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		if g.isShut() {
			return len(p), nil
		}
		return to.Write(p)
	})
}

// wrapObserver returns an observer that blocks before and after the calls of handlers.
func (g *gate) wrapObserver(next handlers.AttemptObserver) handlers.AttemptObserver {
	return func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
		if g.waitIfShut() != nil {
			return ctx, func(string, error) {}
		}
		observed, ended := next(ctx, call)
		return observed, func(outcome string, err error) {
			if g.waitIfShut() != nil {
				return
			}
			ended(outcome, err)
			_ = g.waitIfShut() // the observed end can itself kill the operator
		}
	}
}

// gatedBody is the response body of a watch. Its Close does not block.
type gatedBody struct {
	io.ReadCloser
	gate *gate
}

// Read blocks after a kill, even if an event has already arrived.
func (b gatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if killed := b.gate.waitIfShut(); killed != nil {
		return 0, killed
	}
	return n, err
}
