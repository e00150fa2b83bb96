package facadetest

import (
	"fmt"
	"runtime"
	"strings"
)

// caller is where the engine calls functions of users.
const caller = "\ngithub.com/kopf-runtime/kopf-runtime/reconcilers/adapters."

// functionsUnderWay tells which functions of the user have not returned, with their stacks.
func functionsUnderWay() string {
	var found []string
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		if above, _, called := strings.Cut(stack, caller); called {
			found = append(found, above)
		}
	}
	if len(found) == 0 {
		return "none of its functions is under way"
	}
	return fmt.Sprintf("%d of its functions have not returned:\n\n%s", len(found), strings.Join(found, "\n\n"))
}

// stacks are those of all goroutines.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size {
			return string(buffer[:n])
		}
	}
}
