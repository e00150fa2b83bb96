package facade

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
)

// packagePath begins the names of all functions of this package, and of no other one.
const packagePath = "github.com/kopf-runtime/kopf-runtime/facade."

// location is "folder/file.go:line" of the user's call that led here. It is found by walking out of this package,
// rather than by counting frames: verbs are called directly, through embedding and from one another.
func location() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !strings.HasPrefix(frame.Function, packagePath) {
			folder, file := path.Split(frame.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(folder), file), frame.Line)
		}
		if !more {
			return "unknown location"
		}
	}
}

// mistakes are what is wrong with registrations. They are kept, as registration has nobody to return them to.
type mistakes []error

func (m *mistakes) add(where string, err error) {
	*m = append(*m, fmt.Errorf("%s: %w", where, err))
}

// report joins them under one line that says whose they are; nil if there are none.
func (m mistakes) report(operator string) error {
	switch len(m) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("setting up operator %q: %w", operator, m[0])
	default:
		return fmt.Errorf("setting up operator %q: %d mistakes\n%w", operator, len(m), errors.Join(m...))
	}
}

// strays are mistakes without an operator to keep them: of a nil one, or of a selection that nobody made. The next
// operator that is set up reports them, or else their handlers would be missing silently.
var strays struct {
	sync.Mutex
	mistakes
}

func stray(err error) {
	strays.Lock()
	defer strays.Unlock()
	strays.add(location(), err)
}

func takeStrays() mistakes {
	strays.Lock()
	defer strays.Unlock()
	taken := strays.mistakes
	strays.mistakes = nil
	return taken
}
