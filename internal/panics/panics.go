package panics

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
)

// PanicError is a panic of a user's function as an ordinary error, which is counted, retried and limited like any
// other.
type PanicError struct {
	// Value is the argument of panic. Stack is the stack of the goroutine at that time.
	Value any
	Stack []byte
}

// Error returns only the value: the stack belongs into the log, not on the object.
func (e *PanicError) Error() string { return "panic: " + TextOf(e.Value) }

// StackFields returns the stack of a panic in the chain of the error, as a key and a value for a logger. It returns nil
// if the chain does not have any.
func StackFields(err error) []any {
	var panicked *PanicError
	if !errors.As(err, &panicked) {
		return nil
	}
	return []any{"stack", string(panicked.Stack)}
}

// Contain calls a function of the user, and turns a panic into an *Error. Callers can use the text and the chain of the
// returned error without a guard: the text is read once, and a chain whose methods panic ends there.
func Contain(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	// The methods of the error are the user's code, too. Call them while the guard is active.
	return withSafeMethods(call())
}

// TextOf returns the text of a value. If its method panics, it returns the texts of the errors that the value wraps, or
// its type.
func TextOf(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fallbackText(value)
		}
	}()
	if err, ok := value.(error); ok {
		return err.Error()
	}
	return fmt.Sprint(value)
}

// fallbackText returns a text for a value whose own method panics. Unwrap can panic, too, so it has a guard of its own.
func fallbackText(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a %T whose text cannot be had, as its method panics", value)
		}
	}()
	// A method with a value receiver panics if it is called on a nil pointer.
	if held := reflect.ValueOf(value); held.Kind() == reflect.Pointer && held.IsNil() {
		return fmt.Sprintf("a nil %T", value)
	}
	switch value := value.(type) {
	case interface{ Unwrap() []error }:
		var texts []string
		for _, err := range value.Unwrap() {
			texts = append(texts, TextOf(err))
		}
		return strings.Join(texts, "\n")
	case interface{ Unwrap() error }:
		if inner := value.Unwrap(); inner != nil {
			return TextOf(inner)
		}
	}
	// Without a wrapped error, the guard above supplies the text.
	panic("nothing to be said")
}

// withSafeMethods returns an error whose methods do not panic, and nil for nil.
func withSafeMethods(err error) error {
	if err == nil {
		return nil
	}
	return &safeError{text: TextOf(err), err: err}
}

// safeError wraps an error of the user. It does not have Unwrap: callers that follow the chain themselves would need a
// guard.
type safeError struct {
	text string
	err  error
}

// Error returns the text that was read when the error was returned.
func (t *safeError) Error() string { return t.text }

// Is reports whether the target is in the chain. It reports false if a method in the chain panics.
func (t *safeError) Is(target error) (is bool) {
	defer func() { _ = recover() }()
	return errors.Is(t.err, target)
}

// As finds the first error in the chain that fits the target. It reports false if a method in the chain panics.
func (t *safeError) As(target any) (found bool) {
	defer func() { _ = recover() }()
	return errors.As(t.err, target)
}

// InnermostType returns the Go type of the innermost error of the chain, as far as the chain can be followed. It
// returns an empty text for nil.
func InnermostType(err error) (name string) {
	// The name that was found before a panic is the result.
	defer func() { _ = recover() }()
	for err != nil {
		name = fmt.Sprintf("%T", err)
		if known, ok := err.(*safeError); ok { //nolint:errorlint // the others around it are followed as well
			err = known.err
			continue
		}
		err = errors.Unwrap(err)
	}
	return name
}
