package codec

import (
	"runtime"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// Call calls a user's function that changes an object. A panic of it is an error.
func Call(change func() error) error { return panics.Contain(change) }

const nameOfCall = "github.com/kopf-runtime/kopf-runtime/facade/internal/codec.Call"

// Calling tells whether this goroutine is within a Call. Nothing but the stack knows it.
func Calling() bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if frame.Function == nameOfCall {
			return true
		}
		if !more {
			return false
		}
	}
}
