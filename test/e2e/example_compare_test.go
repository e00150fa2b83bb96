package e2e_test

import (
	"strings"
	"testing"
)

func TestComparisonOfCalls(t *testing.T) {
	cases := map[string]struct {
		reason string
		calls  map[string]int // of two processes, while the event happens
		event  string
		want   string
		wrong  bool
	}{
		"lost": {
			reason: "a call that only one process makes is missing",
			calls:  map[string]int{},
			event:  "kill", want: "lost in step 1 kill: work update", wrong: true,
		},
		"repeated": {
			reason: "a process that exits regularly saves its results, so the next one does not repeat them",
			calls:  map[string]int{"work update": 2},
			event:  "roll", want: "repeated in step 1 roll: work update", wrong: true,
		},
		"repeated after a kill": {
			reason: "the promise about crashes permits it",
			calls:  map[string]int{"work update": 2},
			event:  "kill", want: "repeated after a kill 1, without a reason 0, lost 0",
		},
		"resumed": {
			reason: "handlers for resumed objects are called in each process that begins to act",
			calls:  map[string]int{"work update": 1, "reconnect update": 1},
			event:  "roll", want: "without a reason 0, lost 0",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			single := &electedExample{calls: []map[string]int{{}, {"work update": 1}}}
			pair := &electedExample{calls: []map[string]int{{}, c.calls}}
			line, isWrong := pair.compare(single, []string{c.event})
			if isWrong != c.wrong || !strings.Contains(line, c.want) {
				t.Errorf("%s: got %v, %s; want %v, %s", c.reason, isWrong, line, c.wrong, c.want)
			}
		})
	}
}
