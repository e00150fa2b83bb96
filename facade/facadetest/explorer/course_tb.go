package explorer

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// courseTB is the testing.TB of one course. A failure becomes a violation of the course, and cleanups run when the
// course ends. The embedded test remains successful.
type courseTB struct {
	testing.TB
	scenario  func() Scenario
	onFailure func(text string)

	mu       sync.Mutex
	isFailed bool
	cleanups []func()
}

// Helper does nothing, because failures are reported without their position.
func (b *courseTB) Helper() {}

// Error fails the course.
func (b *courseTB) Error(args ...any) { b.recordFailure(fmt.Sprintln(args...)) }

// Errorf fails the course.
func (b *courseTB) Errorf(format string, args ...any) { b.recordFailure(fmt.Sprintf(format, args...)) }

// Fail fails the course.
func (b *courseTB) Fail() { b.recordFailure("the test has failed") }

// FailNow fails the course and ends the calling goroutine.
func (b *courseTB) FailNow() { b.Fail(); runtime.Goexit() }

// Fatal fails the course and ends the calling goroutine.
func (b *courseTB) Fatal(args ...any) { b.Error(args...); runtime.Goexit() }

// Fatalf fails the course and ends the calling goroutine.
func (b *courseTB) Fatalf(format string, args ...any) { b.Errorf(format, args...); runtime.Goexit() }

// Failed reports whether the course has failed.
func (b *courseTB) Failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isFailed
}

// recordFailure records a failure and continues.
func (b *courseTB) recordFailure(text string) {
	b.mu.Lock()
	b.isFailed = true
	b.mu.Unlock()
	b.onFailure(text)
}

// Log discards the message. Hundreds of courses would flood the output.
func (b *courseTB) Log(...any) {}

// Logf discards the message.
func (b *courseTB) Logf(string, ...any) {}

// Cleanup registers a function for the end of the course.
func (b *courseTB) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// runCleanups runs the cleanups in reverse order. Each has a goroutine of its own, because a cleanup may call FailNow.
func (b *courseTB) runCleanups() {
	for i := len(b.cleanups) - 1; i >= 0; i-- {
		runAlone(b.cleanups[i])
	}
}
