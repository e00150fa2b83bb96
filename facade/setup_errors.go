package kopf

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/manual"
)

// packagePath begins the names of all functions of this package, and of no other one.
const packagePath = "github.com/kopf-runtime/kopf-runtime/facade."

// onBehalf begins those of the package that registers handlers for its users.
const onBehalf = "github.com/kopf-runtime/kopf-runtime/facade/rules."

// location is "folder/file.go:line" of the user's call that led here. It is found by walking out of this package,
// rather than by counting frames: verbs are called directly, through embedding and from one another.
func location() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !strings.HasPrefix(frame.Function, packagePath) &&
			!strings.HasPrefix(frame.Function, onBehalf) {
			folder, file := path.Split(frame.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(folder), file), frame.Line)
		}
		if !more {
			return "unknown location"
		}
	}
}

// setupErrors are the errors of options and registrations. They are kept until the set-up, as registration has nobody
// to return them to.
type setupErrors []error

func (s *setupErrors) add(where string, err error) {
	*s = append(*s, fmt.Errorf("%s: %w", where, err))
}

// report joins them under one line with the operator and the page that explains them; nil if there are none.
func (s setupErrors) report(operator string) error {
	switch len(s) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("setting up operator %q: %w; see %s", operator, s[0], manual.Mistakes)
	default:
		return fmt.Errorf("setting up operator %q: %d mistakes; see %s\n%w",
			operator, len(s), manual.Mistakes, errors.Join(s...))
	}
}

// ownerless are errors without an operator to keep them: of a nil one, or of a selection that nobody made. The next
// operator that is set up reports them, or else their handlers would be missing silently.
var ownerless struct {
	mu   sync.Mutex
	errs setupErrors
}

func addOwnerless(err error) {
	ownerless.mu.Lock()
	defer ownerless.mu.Unlock()
	ownerless.errs.add(location(), err)
}

func takeOwnerless() setupErrors {
	ownerless.mu.Lock()
	defer ownerless.mu.Unlock()
	taken := ownerless.errs
	ownerless.errs = nil
	return taken
}
