package explorer

import (
	"bufio"
	"context"
	"io"
	"time"
)

// lateLimit is how long an event waits for later ones that never come.
const lateLimit = 3 * time.Second

// late is the body of a watch that gives each line only after so many more, or when the time is up.
func late(ctx context.Context, body io.ReadCloser, by int) io.ReadCloser {
	out, in := io.Pipe()
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
	go func() { _ = in.CloseWithError(hold(ctx, lines, in, by)) }()
	return lateBody{Reader: out, all: []io.Closer{body, out}}
}

type heldLine struct {
	text []byte
	due  time.Time
}

func hold(ctx context.Context, lines <-chan []byte, out io.Writer, by int) error {
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
			waiting = append(waiting, heldLine{line, time.Now().Add(lateLimit)})
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

type lateBody struct {
	io.Reader
	all []io.Closer
}

// Close closes both ends.
func (b lateBody) Close() error {
	for _, one := range b.all {
		_ = one.Close()
	}
	return nil
}
