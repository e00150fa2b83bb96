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

// said is the prefix of lines for the yardstick.
const said = "yardstick "

// Tell writes a word with a number for the yardstick that has started this program: "yardstick ticks 12".
func Tell(w io.Writer, word string, value float64) error {
	_, err := fmt.Fprintf(w, "%s%s %s\n", said, word, strconv.FormatFloat(value, 'f', -1, 64))
	return err
}

// TellLatency writes the milliseconds between a change and now. The change holds the time of its request in nanoseconds
// since 1970; other changes are skipped.
func TellLatency(w io.Writer, change string, now time.Time) error {
	sent, err := strconv.ParseInt(change, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // it is one of the changes that are not timed
	}
	return Tell(w, "latency", float64(now.Sub(time.Unix(0, sent)).Nanoseconds())/1e6)
}

// Told is one line that an operator has printed for the yardstick.
type Told struct {
	Value float64
	At    time.Time // when the line arrived
}

// hearing collects the lines for the yardstick.
type hearing struct {
	mu      sync.Mutex
	rest    string // the start of an incomplete line
	told    map[string][]Told
	changed chan struct{}
}

func newHearing() *hearing { return &hearing{told: map[string][]Told{}, changed: make(chan struct{})} }

// Write parses the output of a program in pieces of any size.
func (h *hearing) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := strings.Split(h.rest+string(text), "\n")
	h.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		h.take(line)
	}
	return len(text), nil
}

func (h *hearing) take(line string) {
	rest, ours := strings.CutPrefix(line, said)
	word, number, _ := strings.Cut(rest, " ")
	value, err := strconv.ParseFloat(number, 64)
	if !ours || err != nil {
		return // the line is a log line
	}
	h.told[word] = append(h.told[word], Told{Value: value, At: time.Now()})
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hearing) all(word string) ([]Told, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told[word], h.changed
}

// await returns all lines with a word as soon as there are enough of them.
func (h *hearing) await(ctx context.Context, word string, times int) ([]Told, error) {
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
