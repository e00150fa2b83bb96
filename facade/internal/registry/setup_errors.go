package registry

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// registeringPrefixes contains the prefixes of the names of all functions that register handlers: of this package, of
// package facade and of package rules, which registers handlers for its users.
var registeringPrefixes = []string{
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry.", "github.com/kopf-runtime/kopf-runtime/facade.",
	"github.com/kopf-runtime/kopf-runtime/facade/rules.",
}

// CallerLocation returns "folder/file.go:line" of the user's call that led here. It skips all frames of the framework
// instead of a fixed number: verbs are called directly, through embedding and by each other.
func CallerLocation() string {
	// The framework's own frames are few, so 32 frames always reach the user's call.
	var callers [32]uintptr
	// Skip runtime.Callers and this function.
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		isOwn := func(prefix string) bool { return strings.HasPrefix(frame.Function, prefix) }
		if frame.Function != "" && !slices.ContainsFunc(registeringPrefixes, isOwn) {
			folder, file := path.Split(frame.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(folder), file), frame.Line)
		}
		if !more {
			return "unknown location"
		}
	}
}

// SetupErrors are the errors of options and registrations. Verbs do not return errors, so these are kept until the
// set-up returns them.
type SetupErrors []error

// AddAt adds an error of a call at the place where.
func (s *SetupErrors) AddAt(where string, err error) {
	*s = append(*s, fmt.Errorf("%s: %w", where, err))
}

// JoinedError returns all errors as one, with the name of the operator and the address of the manual page. It returns
// nil without errors.
func (s SetupErrors) JoinedError(operator string) error {
	switch len(s) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("setting up operator %q: %w; see %s", operator, s[0], logging.ManualMistakes)
	default:
		return fmt.Errorf("setting up operator %q: %d mistakes; see %s\n%w",
			operator, len(s), logging.ManualMistakes, errors.Join(s...))
	}
}

// ownerlessErrors holds errors that do not belong to an operator: of a nil operator, or of the zero value of a
// selection. The next operator that is set up reports them. Otherwise, their handlers would be missing silently.
var ownerlessErrors struct {
	mu   sync.Mutex
	errs SetupErrors
}

// AddOwnerless records an error of a user's call without an operator.
func AddOwnerless(err error) {
	ownerlessErrors.mu.Lock()
	defer ownerlessErrors.mu.Unlock()
	ownerlessErrors.errs.AddAt(CallerLocation(), err)
}

// TakeOwnerless returns and clears these errors.
func TakeOwnerless() SetupErrors {
	ownerlessErrors.mu.Lock()
	defer ownerlessErrors.mu.Unlock()
	taken := ownerlessErrors.errs
	ownerlessErrors.errs = nil
	return taken
}
