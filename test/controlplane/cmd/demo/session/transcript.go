package session

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Transcript is the output of a program: it writes whole lines with a prefix and notifies watchers of matching lines.
// It keeps no lines. Its methods may be called from several goroutines at once.
type Transcript struct {
	mu          sync.Mutex
	out         io.Writer
	prefix      string
	partialLine []byte // the beginning of a line whose end has not come yet
	watchers    map[*watcher]struct{}
}

type watcher struct {
	match   func(line string) bool
	matched chan string
}

// NewTranscript returns a Transcript that passes lines on to out.
func NewTranscript(out io.Writer, prefix string) *Transcript {
	return &Transcript{out: out, prefix: prefix, watchers: map[*watcher]struct{}{}}
}

// Write takes any piece of output. It never fails, because a lost terminal must not stop the program.
func (t *Transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partialLine = append(t.partialLine, p...)
	for {
		line, rest, found := bytes.Cut(t.partialLine, []byte("\n"))
		if !found {
			return len(p), nil
		}
		t.pass(string(bytes.TrimSuffix(line, []byte("\r"))))
		t.partialLine = append(t.partialLine[:0], rest...)
	}
}

// Flush writes an unfinished last line after the end of the output.
func (t *Transcript) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.partialLine) > 0 {
		t.pass(string(t.partialLine))
		t.partialLine = nil
	}
}

func (t *Transcript) pass(line string) {
	_, _ = fmt.Fprintf(t.out, "%s%s\n", t.prefix, line)
	for w := range t.watchers {
		if w.match(line) {
			w.matched <- line // is buffered for the one line it gets
			delete(t.watchers, w)
		}
	}
}

// Watch gives the first matching line that comes from now on, through a channel that is never closed. The returned
// function ends the watching.
func (t *Transcript) Watch(match func(line string) bool) (seen <-chan string, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &watcher{match: match, matched: make(chan string, 1)}
	t.watchers[w] = struct{}{}
	return w.matched, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.watchers, w)
	}
}
