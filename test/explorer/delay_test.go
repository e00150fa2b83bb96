package explorer_test

import (
	"bufio"
	"context"
	"io"
	"time"
)

// delayLimit is how long an event waits for later ones that never come.
const delayLimit = 3 * time.Second

// delayed is the body of a watch that gives each line only after so many more, or when the time is up.
func delayed(ctx context.Context, body io.ReadCloser, by int) io.ReadCloser {
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
	go func() {
		_ = in.CloseWithError(hold(ctx, lines, in, by))
	}()
	return struct {
		io.Reader
		io.Closer
	}{out, closers{body, out}}
}

type held struct {
	line []byte
	due  time.Time
}

func hold(ctx context.Context, lines <-chan []byte, out io.Writer, by int) error {
	var waiting []held
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
			waiting = append(waiting, held{line, time.Now().Add(delayLimit)})
			if len(waiting) <= by {
				continue
			}
		case <-due:
		}
		if _, err := out.Write(waiting[0].line); err != nil {
			return err
		}
		waiting = waiting[1:]
	}
}

type closers []io.Closer

func (c closers) Close() error {
	for _, one := range c {
		_ = one.Close()
	}
	return nil
}
