package explorer

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// bench is the test of one course: its failures are what the course shows, and its end is that of the course.
type bench struct {
	testing.TB
	scenario func() Scenario
	failed   func(text string)

	mu       sync.Mutex
	isFailed bool
	cleanups []func()
}

// Helper does nothing: places are not told.
func (b *bench) Helper() {}

// Error fails the course.
func (b *bench) Error(args ...any) { b.fail(fmt.Sprintln(args...)) }

// Errorf fails the course.
func (b *bench) Errorf(format string, args ...any) { b.fail(fmt.Sprintf(format, args...)) }

// Fail fails the course.
func (b *bench) Fail() { b.fail("the test has failed") }

// FailNow ends the play.
func (b *bench) FailNow() { b.Fail(); runtime.Goexit() }

// Fatal ends the play.
func (b *bench) Fatal(args ...any) { b.Error(args...); runtime.Goexit() }

// Fatalf ends the play.
func (b *bench) Fatalf(format string, args ...any) { b.Errorf(format, args...); runtime.Goexit() }

// Failed tells whether the course has failed.
func (b *bench) Failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isFailed
}

// Log is silent: there are too many courses.
func (b *bench) Log(...any) {}

// Logf is silent.
func (b *bench) Logf(string, ...any) {}

// Cleanup is called when the course is over.
func (b *bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

func (b *bench) fail(text string) {
	b.mu.Lock()
	b.isFailed = true
	b.mu.Unlock()
	b.failed(text)
}

// end calls what is to be called then, the last one first.
func (b *bench) end() {
	for i := len(b.cleanups) - 1; i >= 0; i-- {
		alone(b.cleanups[i])
	}
}

// leave ends the play without a failure of its own.
func (b *bench) leave() { runtime.Goexit() }
