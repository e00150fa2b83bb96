package facadetest

import (
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/standstill"
)

// handlerCallPrefix is the package that calls the functions of users. The part of a stack above it belongs to the
// user's function.
const handlerCallPrefix = "\ngithub.com/kopf-runtime/kopf-runtime/reconcilers/adapters."

// runningUserFunctions returns a message with the stacks of user functions that have not returned. It looks at all
// goroutines, so functions of another operator in the process are included.
func runningUserFunctions() string {
	var found []string
	for stack := range strings.SplitSeq(standstill.AllStacks(), "\n\n") {
		if above, _, called := strings.Cut(stack, handlerCallPrefix); called {
			found = append(found, above)
		}
	}
	if len(found) == 0 {
		return "none of its functions is under way"
	}
	return fmt.Sprintf("%d of its functions have not returned:\n\n%s", len(found), strings.Join(found, "\n\n"))
}
