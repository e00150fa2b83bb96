package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// event is one line of a history: what an operator says, or what happens to it.
type event struct {
	report

	at time.Duration // since the beginning, on the clock of the test
}

func (e event) String() string {
	words := []string{fmt.Sprintf("%8.3fs %-8s %-7s", e.at.Seconds(), e.By, e.Kind)}
	if e.Call != "" {
		words = append(words, fmt.Sprintf("%s of %s, change %d", e.Call, e.Object, e.Change))
	}
	if e.Lasted > 0 {
		words = append(words, e.Lasted.Round(time.Millisecond).String())
	}
	return strings.Join(append(words, e.Text), " ")
}

// ledger is the history as it comes in.
type ledger struct {
	server    *httptest.Server
	startedAt time.Time

	mu     sync.Mutex
	events []event
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{startedAt: time.Now()}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	go l.recordStalls(t.Context().Done())
	return l
}

// ServeHTTP takes one report. It is answered when it is in the history.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var one report
	if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.add(one)
}

func (l *ledger) add(one report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{one, time.Since(l.startedAt)})
}

// history returns the events so far.
func (l *ledger) history() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// actingOperator returns the operator that has last begun a call.
func (l *ledger) actingOperator() string {
	for _, e := range slices.Backward(l.history()) {
		if e.Kind == "begin" {
			return e.By
		}
	}
	return ""
}

// testIdentity is who says that this process has stood still.
const testIdentity = "test"

func (l *ledger) recordStalls(done <-chan struct{}) {
	for before := time.Now(); ; {
		select {
		case <-done:
			return
		case <-time.After(tick):
		}
		now := time.Now()
		if still := now.Sub(before) - tick; still > tick/10 {
			l.add(report{Kind: "stall", By: testIdentity, Lasted: still})
		}
		before = now
	}
}

// peerLog extracts the lines about peers from the log of an operator.
type peerLog struct {
	ledger      *ledger
	identity    string
	partialLine string
}

func (t *peerLog) Write(text []byte) (int, error) {
	lines := strings.SplitAfter(t.partialLine+string(text), "\n")
	t.partialLine = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		for _, word := range []string{"Paus", "Resum", "Waiting", "eer", "panic", "DATA RACE"} {
			if strings.Contains(line, word) {
				t.ledger.add(report{Kind: "log", By: t.identity, Text: strings.TrimSpace(line)})
				break
			}
		}
	}
	return len(text), nil
}
