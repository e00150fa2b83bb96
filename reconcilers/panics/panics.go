package panics

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
)

// Error is a panic of a user's function, made an ordinary error: counted, delayed, limited.
type Error struct {
	// Value is what the function panicked with; Stack is where.
	Value any
	Stack []byte
}

// Error has the value alone: the stack goes to the log, not to the object.
func (e *Error) Error() string { return "panic: " + Text(e.Value) }

// Stack returns the stack of the panic in the chain of the error, as a key and a value for a logger; nothing if there
// is none.
func Stack(err error) []any {
	var panicked *Error
	if !errors.As(err, &panicked) {
		return nil
	}
	return []any{"stack", string(panicked.Stack)}
}

// Contain calls a function of the user. A panic becomes an *Error. The text and the chain of the returned error can be
// used without a guard: the text is read once, and a chain that panics ends there.
func Contain(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{Value: value, Stack: debug.Stack()}
		}
	}()
	return tame(call())
}

// Text is what a value says of itself; or, if that panics, what the errors in it say, or of which type it is.
func Text(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = silent(value)
		}
	}()
	if err, ok := value.(error); ok {
		return err.Error()
	}
	return fmt.Sprint(value)
}

// silent is the text of a value that cannot be asked for it.
func silent(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a %T whose text cannot be had, as its method panics", value)
		}
	}()
	if held := reflect.ValueOf(value); held.Kind() == reflect.Pointer && held.IsNil() {
		return fmt.Sprintf("a nil %T", value)
	}
	switch value := value.(type) {
	case interface{ Unwrap() []error }:
		var texts []string
		for _, err := range value.Unwrap() {
			texts = append(texts, Text(err))
		}
		return strings.Join(texts, "\n")
	case interface{ Unwrap() error }:
		if inner := value.Unwrap(); inner != nil {
			return Text(inner)
		}
	}
	panic("nothing to be said")
}

// tame returns an error whose methods do not panic, and nil for nil.
func tame(err error) error {
	if err == nil {
		return nil
	}
	return &tamed{text: Text(err), err: err}
}

// tamed has no Unwrap: callers that walk down the chain would have to recover.
type tamed struct {
	text string
	err  error
}

// Error is the text as it was.
func (t *tamed) Error() string { return t.text }

// Is tells whether the target is in the chain.
func (t *tamed) Is(target error) (is bool) {
	defer func() { _ = recover() }()
	return errors.Is(t.err, target)
}

// As finds the first error in the chain that fits.
func (t *tamed) As(target any) (found bool) {
	defer func() { _ = recover() }()
	return errors.As(t.err, target)
}

// Type is the Go type of the innermost error of the chain, as far as the chain can be followed; empty without an error.
func Type(err error) (name string) {
	defer func() { _ = recover() }()
	for err != nil {
		name = fmt.Sprintf("%T", err)
		if known, ok := err.(*tamed); ok { //nolint:errorlint // the others around it are followed as well
			err = known.err
			continue
		}
		err = errors.Unwrap(err)
	}
	return name
}
