package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// electionEvents are what happens to the process that holds the Lease, each with one edit of the objects.
var electionEvents = []string{"freeze", "kill", "roll", "restart", "kill", "roll"}

// notElected has the reasons to leave out examples.
var notElected = map[string]string{
	"10-builtins":          "the kinds of other examples disturb it: it serves a category",
	"17-admission":         "the API server calls one process at an address of this machine",
	"99-all-at-once":       "the API server calls one process at an address of this machine",
	"clusters":             "its cloud is in the memory of one process",
	"database":             "its servers are in the memory of one process",
	"database-statefulset": "it waits for a StatefulSet that no controller completes",
	"lessons/04-selecting": "the kinds of other examples disturb it: it serves a category",
	"lessons/13-children":  "it waits for a Deployment that no controller completes",
	"lessons/15-admission": "the API server calls one process at an address of this machine",
	"secrets":              "it serves the namespaces of other examples",
	"tasks/idempotent":     "its service is in the memory of one process",
	"tasks/sharding":       "its replicas share the objects instead",
}

// The spec runs on demand: make explore NAME=election.
var _ = Describe("Two processes of every example with --leader-elect=true", func() {
	if programs := examplePrograms(); programs != nil {
		It("call what one process does", func(ctx context.Context) { compareElected(ctx, programs) })
	}
})

// compareElected plays all examples at once with one process each, and then with two.
func compareElected(ctx context.Context, programs []exampleProgram) {
	GinkgoHelper()
	seed := electionSeed()
	fmt.Println("SEED:", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it repeats a play
	events := append([]string(nil), electionEvents...)
	random.Shuffle(len(events), func(i, k int) { events[i], events[k] = events[k], events[i] })

	var played, figures []string
	one := &electionPlay{events: make([]string, len(events)), patience: time.Minute}
	for _, program := range programs {
		reason := program.skipped
		if reason == "" {
			reason = notElected[program.name]
		}
		if reason != "" {
			figures = append(figures, fmt.Sprintf("%-24s not played: %s", program.name, reason))
			continue
		}
		program.installKinds()
		one.add(ctx, program)
	}
	one.run(ctx)
	two := &electionPlay{events: events, isPair: true, patience: waitTimeout, random: random}
	for _, single := range one.examples {
		if single.failure != nil {
			reason := "it does not store that it has handled an edit: " + single.failure.Error()
			figures = append(figures, fmt.Sprintf("%-24s not played: %s", single.name, reason))
			continue
		}
		two.add(ctx, single.exampleProgram)
		played = append(played, single.name)
	}
	two.run(ctx)
	wrong := 0
	for _, pair := range two.examples {
		line, isWrong := pair.compare(one.find(pair.name), events)
		figures = append(figures, line)
		if isWrong {
			wrong++
		}
	}
	fmt.Printf("events: %s\n%s\n", strings.Join(events, " "), strings.Join(figures, "\n"))
	Expect(played).NotTo(BeEmpty())
	Expect(wrong).To(BeZero(), "calls are neither lost nor repeated without a reason")
}

// electionSeed is that of the variable SEED, or another one each time.
func electionSeed() uint64 {
	GinkgoHelper()
	given := os.Getenv("SEED")
	if given == "" {
		return rand.Uint64N(1000)
	}
	seed, err := strconv.ParseUint(given, 10, 64)
	Expect(err).NotTo(HaveOccurred(), "SEED must be a number")
	return seed
}

// compare returns the figures of an example, and whether calls are lost or repeated without a reason. One process makes
// the calls of an edit once. A process that is killed or frozen has not saved all results: another one repeats these.
func (e *electedExample) compare(single *electedExample, events []string) (line string, isWrong bool) {
	known := map[string]bool{}
	for _, counts := range single.calls {
		for call := range counts {
			known[handlerOf(call)] = true
		}
	}
	var expected, made, explained, unexplained, lost int
	var details []string
	for i, counts := range e.calls {
		event := ""
		if i > 0 && i <= len(events) {
			event = events[i-1]
		}
		for call, wanted := range single.calls[i] {
			expected += wanted
			if missing := wanted - counts[call]; missing > 0 {
				lost += missing
				details = append(details, fmt.Sprintf("lost in step %d %s: %s", i, event, call))
			}
		}
		for call, count := range counts {
			surplus := count - single.calls[i][call]
			switch {
			case !known[handlerOf(call)]: // it is called for objects that exist when a process begins to act
				continue
			case surplus <= 0:
			case event == "kill" || event == "freeze":
				explained += surplus
			default:
				unexplained += surplus
				details = append(details, fmt.Sprintf("repeated in step %d %s: %s", i, event, call))
			}
			made += count
		}
	}
	line = fmt.Sprintf("%-24s events %d, calls of one process %3d, of two %3d", e.name, len(events), expected, made)
	line += fmt.Sprintf(", repeated after a kill %d, without a reason %d, lost %d", explained, unexplained, lost)
	isWrong = lost+unexplained > 0 || e.failure != nil
	if e.failure != nil {
		details = append(details, e.failure.Error())
	}
	return strings.Join(append([]string{line}, details...), "\n    "), isWrong
}

func handlerOf(call string) string {
	handler, _, _ := strings.Cut(call, " ")
	return handler
}
