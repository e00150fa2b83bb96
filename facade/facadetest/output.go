package facadetest

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// output collects the output of an operator and signals new output to waiting tests.
type output struct {
	mu                       sync.Mutex
	combined, stdout, stderr bytes.Buffer  // both streams interleaved, stdout, stderr
	nextWrite                chan struct{} // closed and replaced by each write
}

func newOutput() *output { return &output{nextWrite: make(chan struct{})} }

// streamWriter returns a writer for one of the two streams. It also appends to the interleaved output.
func (o *output) streamWriter(own *bytes.Buffer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.combined.Write(p)
		own.Write(p)
		close(o.nextWrite)
		o.nextWrite = make(chan struct{})
		return len(p), nil
	})
}

// streamText returns the content of a stream.
func (o *output) streamText(of *bytes.Buffer) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return of.String()
}

// containsText reports whether the output contains the text. It also returns a channel that is closed by the next
// write. Both are taken under one lock, so that no write between the check and the wait is missed.
func (o *output) containsText(text string) (bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.combined.String(), text), o.nextWrite
}

// lastLines returns the last lines of the output, for messages.
func (o *output) lastLines() string {
	const most = 20
	lines := strings.Split(strings.TrimRight(o.streamText(&o.combined), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// writerFunc is a function that implements [io.Writer].
type writerFunc func(p []byte) (int, error)

// Write calls the function.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
