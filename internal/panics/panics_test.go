package panics_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// selfPanicking panics with itself, which is more than fmt can take.
type selfPanicking struct{ n int }

func (e *selfPanicking) Error() string   { e.n++; panic(e) }
func (e *selfPanicking) Unwrap() error   { panic(e) }
func (e *selfPanicking) Is(error) bool   { panic(e) }
func (e *selfPanicking) As(any) bool     { panic(e) }
func (e *selfPanicking) String() string  { panic(e) }
func (e *selfPanicking) Permanent() bool { return true }

var errPlain = errors.New("plain")

func TestContain(t *testing.T) {
	err := panics.Contain(func() error { panic("boo") })
	var panicked *panics.PanicError
	if !errors.As(err, &panicked) || err.Error() != "panic: boo" || len(panicked.Stack) == 0 {
		t.Errorf("a panic is an error with its stack, got %v", err)
	}
	if err := panics.Contain(func() error { return errPlain }); !errors.Is(err, errPlain) || err.Error() != "plain" {
		t.Errorf("want the error, got %v", err)
	}
	if err := panics.Contain(func() error { return nil }); err != nil {
		t.Errorf("want no error, got %v", err)
	}
	if err := panics.Contain(func() error { return &selfPanicking{} }); errors.Is(err, errPlain) || err.Error() == "" {
		t.Error("methods of the returned error must not panic")
	}
	if err := panics.Contain(func() error { panic(&selfPanicking{}) }); err.Error() == "" {
		t.Error("no text at all")
	}
}

func TestErrorHidesTheStack(t *testing.T) {
	err := &panics.PanicError{Value: errors.New("nil map"), Stack: []byte("goroutine 1 [running]")}
	if err.Error() != "panic: nil map" {
		t.Errorf("the text goes to the object, where a stack is noise: %q", err)
	}
	if found := panics.StackFields(errors.Join(errPlain, err)); len(found) != 2 || found[1] != "goroutine 1 [running]" {
		t.Errorf("the log has use for it: %v", found)
	}
	if found := panics.StackFields(errPlain); found != nil {
		t.Errorf("where nothing panicked, there is none: %v", found)
	}
}

// wrappingError has no text of its own.
type wrappingError struct{ err error }

func (w *wrappingError) Error() string { panic(w) }
func (w *wrappingError) Unwrap() error { return w.err }

func TestTextOfWhatIsWrapped(t *testing.T) {
	const none = "a *panics_test.wrappingError whose text cannot be had, as its method panics"
	if got := panics.TextOf(&wrappingError{errPlain}); got != "plain" {
		t.Errorf("the text must be that of the wrapped error: %q", got)
	}
	if got := panics.TextOf(&wrappingError{}); got != none {
		t.Errorf("it wraps nothing that could say more: %q", got)
	}
}

func TestText(t *testing.T) {
	for want, value := range map[string]any{
		"plain": errPlain, "3": 3, "<nil>": nil,
		"a nil *panics_test.selfPanicking":                                            (*selfPanicking)(nil),
		"a *panics_test.selfPanicking whose text cannot be had, as its method panics": &selfPanicking{},

		"plain\na nil *panics_test.selfPanicking": errors.Join(errPlain, (*selfPanicking)(nil)),
	} {
		if got := panics.TextOf(value); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

// withSafeMethods returns the error as callers get it.
func withSafeMethods(err error) error { return panics.Contain(func() error { return err }) }

func TestErrorsOfFunctions(t *testing.T) {
	if err := withSafeMethods(nil); err != nil {
		t.Errorf("no error is none, got %v", err)
	}
	bad := &selfPanicking{}
	err := withSafeMethods(errors.Join(errPlain, bad))
	asked := bad.n
	if _ = err.Error(); bad.n != asked {
		t.Error("the text is asked for again")
	}
	var permanent interface{ Permanent() bool }
	var missing *panics.PanicError
	if !errors.Is(err, errPlain) || !errors.As(err, &permanent) || errors.Is(
		err, errors.ErrUnsupported,
	) || errors.As(err, &missing) {
		t.Error("errors.Is and errors.As must find the errors of the chain, and no others")
	}
}

func TestType(t *testing.T) {
	for want, err := range map[string]error{
		"": nil, "*errors.errorString": withSafeMethods(fmt.Errorf("around: %w", withSafeMethods(errPlain))),
		"*panics_test.selfPanicking": withSafeMethods(&selfPanicking{}),
	} {
		if got := panics.InnermostType(err); got != want {
			t.Errorf("the type of the innermost error is %q, not %q", got, want)
		}
	}
}
