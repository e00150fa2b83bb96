package standstill

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits that keep a report readable.
const (
	// maxGoroutines is the number of goroutines that a report shows of each kind.
	maxGoroutines = 3
	// maxStackLines is the number of stack lines that a report shows: the header and ten functions with two lines each.
	// The creator of the goroutine follows.
	maxStackLines = 21
)

// routine is one goroutine of a bubble.
type routine struct {
	state string // such as "chan receive (durable)"
	stack string
}

// stoppedBubble is a bubble whose virtual time has stopped. Two looks with equal signatures have seen the same
// goroutines in the same states.
type stoppedBubble struct {
	signature string
	routines  []routine
}

// headerPattern matches the first line of a stack, whose format is that of the Go runtime.
var headerPattern = regexp.MustCompile(`^goroutine \d+[^\[\n]* \[(.+)\]:`)

// findStoppedBubbles returns the bubbles whose virtual time has stopped, by id, given the stacks of all goroutines.
// Such a bubble has no goroutine that can run, and at least one that waits for a mutex.
func findStoppedBubbles(stacks string) map[string]stoppedBubble {
	found, moving := map[string]stoppedBubble{}, map[string]bool{}
	for text := range strings.SplitSeq(strings.TrimSpace(stacks), "\n\n") {
		described := stackHeader(text)
		id := bubbleOf(described)
		if id == "" {
			continue
		}
		// The header continues with the waiting time and the bubble, which are not part of the state.
		state, _, _ := strings.Cut(described, ",")
		one := routine{state: state, stack: text}
		if !one.isIdle() && !one.wantsMutex() {
			moving[id] = true
		}
		s := found[id]
		number, _, _ := strings.Cut(text, "[")
		s.signature += number + state + "\n"
		s.routines = append(s.routines, one)
		found[id] = s
	}
	for id, s := range found {
		// Without a wait for a mutex, virtual time advances, or the runtime reports a deadlock itself.
		if moving[id] || !slices.ContainsFunc(s.routines, routine.wantsMutex) {
			delete(found, id)
		}
	}
	return found
}

// stackHeader returns the text in brackets in the first line of a stack; empty if the text is not a stack.
func stackHeader(stack string) string {
	matched := headerPattern.FindStringSubmatch(stack)
	if matched == nil {
		return ""
	}
	return matched[1]
}

var bubblePattern = regexp.MustCompile(`, synctest bubble (\d+)`)

// bubbleOf returns the id of the bubble in a header, or an empty text outside of bubbles.
func bubbleOf(header string) string {
	matched := bubblePattern.FindStringSubmatch(header)
	if matched == nil {
		return ""
	}
	return matched[1]
}

// isIdle reports whether virtual time can advance while the goroutine waits. The runtime marks such waits as durable.
func (r routine) isIdle() bool { return strings.HasSuffix(r.state, "(durable)") }

// wantsMutex reports whether the goroutine waits for a mutex, a sync.Once included.
func (r routine) wantsMutex() bool {
	return strings.HasPrefix(r.state, "sync.Mutex.") || strings.HasPrefix(r.state, "sync.RWMutex.")
}

// describeWaits returns a message with the goroutines that wait for a mutex, and those that may hold it. The stacks do
// not show the holder, so the report looks for durable waits within methods of the same type.
func (s stoppedBubble) describeWaits() string {
	var waiting, holding []string
	owners := map[string]bool{}
	for _, one := range s.routines {
		if one.wantsMutex() {
			waiting = append(waiting, one.shortenedStack())
			owners[one.lockOwner()] = true
		}
	}
	for _, one := range s.routines {
		if one.isIdle() && slices.ContainsFunc(one.calledFunctions(),
			func(f string) bool { return owners[ownerOf(f)] }) {
			holding = append(holding, one.shortenedStack())
		}
	}
	text := "the bubble stands still: virtual time passes only when all goroutines wait for something in the bubble, " +
		"and a wait for a mutex does not count.\n" + formatStacks("Waiting for a mutex", waiting)
	if len(holding) == 0 {
		return text + "\n\nNo goroutine in the same code holds a mutex: search the callers of these."
	}
	return text + "\n\n" + formatStacks("One of these holds a mutex, and waits", holding)
}

// formatStacks returns a title and some of the stacks, with the number of those left out.
func formatStacks(title string, stacks []string) string {
	more := ""
	if len(stacks) > maxGoroutines {
		more, stacks = fmt.Sprintf("\n\nand %d more", len(stacks)-maxGoroutines), stacks[:maxGoroutines]
	}
	return fmt.Sprintf("%s:\n\n%s%s", title, strings.Join(stacks, "\n\n"), more)
}

// shortenedStack returns the stack without its middle. The last two lines name the creator of the goroutine.
func (r routine) shortenedStack() string {
	lines := strings.Split(r.stack, "\n")
	if len(lines) <= maxStackLines+2 {
		return r.stack
	}
	return strings.Join(slices.Concat(lines[:maxStackLines], []string{"\t…"}, lines[len(lines)-2:]), "\n")
}

// calledFunctions returns the names of the functions on the stack, the innermost first.
func (r routine) calledFunctions() (all []string) {
	for line := range strings.Lines(r.stack) {
		called := strings.TrimRight(line, "\n")
		if strings.HasPrefix(called, "goroutine ") || strings.HasPrefix(called, "\t") ||
			strings.HasPrefix(called, "created by ") {
			continue
		}
		// The arguments in parentheses follow the name. A method's name contains parentheses as well, so the last ones
		// count.
		if end := strings.LastIndex(called, "("); end > 0 {
			all = append(all, called[:end])
		}
	}
	return all
}

// lockOwner returns the type, or the function, that locks the mutex: the innermost one outside of package sync.
func (r routine) lockOwner() string {
	for _, f := range r.calledFunctions() {
		if !strings.HasPrefix(f, "sync.") && !strings.HasPrefix(f, "internal/sync.") {
			return ownerOf(f)
		}
	}
	return ""
}

// ownerOf returns the type of a method, such as "pkg.(*T)", or else the function without its closures.
func ownerOf(function string) string {
	if before, _, is := strings.Cut(function, ")."); is {
		return before + ")"
	}
	before, _, _ := strings.Cut(function, ".func")
	return before
}
