package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// firstLineDelay is how long a wait may last without a line.
	firstLineDelay = time.Second
	// lineInterval is the pause between two lines about the same wait.
	lineInterval = 10 * time.Second
)

// Reporter writes lines about work in progress. Its methods may be called from several goroutines at once; a nil
// *Reporter is silent.
type Reporter struct {
	mu sync.Mutex
	w  io.Writer
}

// New returns a Reporter that writes to w, usually standard error. A nil w gives a silent one.
func New(w io.Writer) *Reporter {
	if w == nil {
		return nil
	}
	return &Reporter{w: w}
}

// Say writes one line at once. A newline at the end is added.
func (r *Reporter) Say(format string, args ...any) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A failed write of a progress line must not fail the work.
	_, _ = fmt.Fprintf(r.w, "controlplane: "+format+"\n", args...)
}

// Waiting announces a wait that is about to begin: nothing is written if it ends within a second, else one line, and
// then a line with the elapsed time every ten seconds, until the returned function is called (again is harmless).
// The note, which may be empty, stands in parentheses behind: "about 5 minutes the first time".
func (r *Reporter) Waiting(what, note string) (done func()) {
	if r == nil {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		r.repeat(what, note, stop)
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped // so that no line about a wait appears after its end
	})
}

func (r *Reporter) repeat(what, note string, stop <-chan struct{}) {
	began := time.Now()
	timer := time.NewTimer(firstLineDelay)
	defer timer.Stop()
	for first := true; ; first = false {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		if first {
			r.Say("%s%s", what, parenthesis(note))
			timer.Reset(lineInterval - firstLineDelay)
			continue
		}
		r.Say("%s%s", what, parenthesis(time.Since(began).Round(time.Second).String(), note))
		timer.Reset(lineInterval)
	}
}

func parenthesis(parts ...string) string {
	kept := parts[:0]
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return " …"
	}
	return " (" + strings.Join(kept, ", ") + ")"
}
