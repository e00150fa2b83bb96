package facadetest

import (
	"fmt"
	"runtime"
	"strings"
)

// handlerCallPrefix is the package that calls the functions of users. The part of a stack above it belongs to the
// user's function.
const handlerCallPrefix = "\ngithub.com/kopf-runtime/kopf-runtime/reconcilers/adapters."

// runningUserFunctions returns a message with the stacks of user functions that have not returned. It looks at all
// goroutines, so functions of another operator in the process are included.
func runningUserFunctions() string {
	var found []string
	for stack := range strings.SplitSeq(allStacks(), "\n\n") {
		if above, _, called := strings.Cut(stack, handlerCallPrefix); called {
			found = append(found, above)
		}
	}
	if len(found) == 0 {
		return "none of its functions is under way"
	}
	return fmt.Sprintf("%d of its functions have not returned:\n\n%s", len(found), strings.Join(found, "\n\n"))
}

// allStacks returns the stacks of all goroutines. runtime.Stack truncates silently, so the buffer grows until it is not
// full.
func allStacks() string {
	for size := 1 << 20; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size {
			return string(buffer[:n])
		}
	}
}
