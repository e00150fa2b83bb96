package explorer

import (
	"bufio"
	"context"
	"io"
	"time"
)

// maxEventDelay is the maximum delay of an event if no later ones arrive.
const maxEventDelay = 3 * time.Second

// delayedBody returns the body of a watch that delays each line until the given number of later lines has arrived, or
// the time limit has passed.
func delayedBody(ctx context.Context, body io.ReadCloser, by int) io.ReadCloser {
	out, in := io.Pipe()
	// The buffer lets the reader continue while lines are held back.
	lines := make(chan []byte, 1000)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(body)
		for {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	go func() { _ = in.CloseWithError(forwardDelayed(ctx, lines, in, by)) }()
	return delayedWatchBody{Reader: out, closers: []io.Closer{body, out}}
}

// heldLine is a delayed line of a watch.
type heldLine struct {
	text []byte
	due  time.Time
}

// forwardDelayed forwards lines with the delay. At the end of the watch, delayed lines are lost, as with a broken
// connection.
func forwardDelayed(ctx context.Context, lines <-chan []byte, out io.Writer, by int) error {
	var waiting []heldLine
	for {
		var due <-chan time.Time
		if len(waiting) > 0 {
			due = time.After(time.Until(waiting[0].due))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, ok := <-lines:
			if !ok {
				return io.EOF
			}
			// Each line is delayed from its own arrival.
			waiting = append(waiting, heldLine{line, time.Now().Add(maxEventDelay)})
			// Enough later lines must be waiting.
			if len(waiting) <= by {
				continue
			}
		case <-due:
		}
		if _, err := out.Write(waiting[0].text); err != nil {
			return err
		}
		waiting = waiting[1:]
	}
}

// delayedWatchBody is the delayed body. Closing it also closes the original one.
type delayedWatchBody struct {
	io.Reader
	closers []io.Closer
}

// Close closes both bodies.
func (b delayedWatchBody) Close() error {
	for _, one := range b.closers {
		_ = one.Close()
	}
	return nil
}
