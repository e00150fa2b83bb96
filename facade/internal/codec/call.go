package codec

import (
	"runtime"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// Call calls a user's function that changes an object, and converts a panic into an error.
func Call(change func() error) error { return panics.Contain(change) }

// callFrameName is the name of Call in stack frames. It must change together with the name or the package of Call: the
// compiler does not check that.
const callFrameName = "github.com/kopf-runtime/kopf-runtime/facade/internal/codec.Call"

// IsInCall reports whether this goroutine is inside of a Call. It inspects the stack, because the user's function gets
// no context that could carry this information. Only the nearest 64 frames are searched.
func IsInCall() bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		// Inlined calls have frames as well, so Call is found even if the compiler inlines it.
		frame, more := frames.Next()
		if frame.Function == callFrameName {
			return true
		}
		if !more {
			return false
		}
	}
}
