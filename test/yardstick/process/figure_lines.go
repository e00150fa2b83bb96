package process

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// figurePrefix is the prefix of lines for the yardstick.
const figurePrefix = "yardstick "

// WriteFigure writes a word with a number for the yardstick that has started this program: "yardstick ticks 12".
func WriteFigure(w io.Writer, word string, value float64) error {
	_, err := fmt.Fprintf(w, "%s%s %s\n", figurePrefix, word, strconv.FormatFloat(value, 'f', -1, 64))
	return err
}

// WriteLatency writes the milliseconds between a change and now. The change holds the time of its request in
// nanoseconds since 1970; other changes are skipped.
func WriteLatency(w io.Writer, change string, now time.Time) error {
	sent, err := strconv.ParseInt(change, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // it is one of the changes that are not timed
	}
	return WriteFigure(w, "latency", float64(now.Sub(time.Unix(0, sent)).Nanoseconds())/1e6)
}

// FigureLine is one line that an operator has printed for the yardstick.
type FigureLine struct {
	Value      float64
	ReceivedAt time.Time // when the line arrived
}

// figureReader collects the lines for the yardstick.
type figureReader struct {
	mu          sync.Mutex
	partialLine string // the start of an incomplete line
	lines       map[string][]FigureLine
	changed     chan struct{}
}

func newFigureReader() *figureReader {
	return &figureReader{lines: map[string][]FigureLine{}, changed: make(chan struct{})}
}

// Write parses the output of a program in pieces of any size.
func (h *figureReader) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := strings.Split(h.partialLine+string(text), "\n")
	h.partialLine = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		h.parseLine(line)
	}
	return len(text), nil
}

func (h *figureReader) parseLine(line string) {
	rest, ours := strings.CutPrefix(line, figurePrefix)
	word, number, _ := strings.Cut(rest, " ")
	value, err := strconv.ParseFloat(number, 64)
	if !ours || err != nil {
		return // the line is a log line
	}
	h.lines[word] = append(h.lines[word], FigureLine{Value: value, ReceivedAt: time.Now()})
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *figureReader) all(word string) ([]FigureLine, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines[word], h.changed
}

// await returns all lines with a word as soon as there are enough of them.
func (h *figureReader) await(ctx context.Context, word string, times int) ([]FigureLine, error) {
	for {
		told, changed := h.all(word)
		if len(told) >= times {
			return told, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return told, fmt.Errorf("waiting for the operator to print %q: %w", word, context.Cause(ctx))
		}
	}
}
