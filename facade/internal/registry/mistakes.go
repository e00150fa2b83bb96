package registry

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/manual"
)

// own begin the names of all functions of this package, of the verbs, and of the package that registers handlers for
// its users.
var own = []string{
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry.", "github.com/kopf-runtime/kopf-runtime/facade.",
	"github.com/kopf-runtime/kopf-runtime/facade/rules.",
}

// Location is "folder/file.go:line" of the user's call that led here. It is found by walking out of these packages,
// rather than by counting frames: verbs are called directly, through embedding and from one another.
func Location() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		isOwn := func(prefix string) bool { return strings.HasPrefix(frame.Function, prefix) }
		if frame.Function != "" && !slices.ContainsFunc(own, isOwn) {
			folder, file := path.Split(frame.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(folder), file), frame.Line)
		}
		if !more {
			return "unknown location"
		}
	}
}

// SetupErrors are the errors of options and registrations. They are kept until the set-up, as the verbs do not
// return errors.
type SetupErrors []error

// Add adds an error of a call at this place.
func (s *SetupErrors) Add(where string, err error) {
	*s = append(*s, fmt.Errorf("%s: %w", where, err))
}

// Report joins them under one line with the operator and the page that explains them; nil if there are none.
func (s SetupErrors) Report(operator string) error {
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
	errs SetupErrors
}

// AddOwnerless keeps an error of the user's call without an operator.
func AddOwnerless(err error) {
	ownerless.mu.Lock()
	defer ownerless.mu.Unlock()
	ownerless.errs.Add(Location(), err)
}

// TakeOwnerless returns these errors, and forgets them.
func TakeOwnerless() SetupErrors {
	ownerless.mu.Lock()
	defer ownerless.mu.Unlock()
	taken := ownerless.errs
	ownerless.errs = nil
	return taken
}
