package facadetest

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// output is what an operator has written so far, and tells when there is more.
type output struct {
	mu             sync.Mutex
	all, out, errs bytes.Buffer
	more           chan struct{} // closed by the next write
}

func newOutput() *output { return &output{more: make(chan struct{})} }

// stream is one of the two, which all of the output has in the order of the writes.
func (o *output) stream(own *bytes.Buffer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all.Write(p)
		own.Write(p)
		close(o.more)
		o.more = make(chan struct{})
		return len(p), nil
	})
}

// text is that of a stream so far.
func (o *output) text(of *bytes.Buffer) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return of.String()
}

// has says whether all of the output contains the text, and gives what is closed when it is worth another look.
func (o *output) has(text string) (bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.all.String(), text), o.more
}

// tail is the end of all of the output, for messages.
func (o *output) tail() string {
	const most = 20
	lines := strings.Split(strings.TrimRight(o.text(&o.all), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

type writerFunc func(p []byte) (int, error)

// Write calls the function.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
