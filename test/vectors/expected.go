package vectors

import (
	"regexp"
	"strings"
	"testing"
)

// Expected is the expected output of a case.
type Expected struct {
	// Value is a JSON value as unstructured objects have them.
	Value any
}

// MustFail reports whether the case must end with an error: the value has the single key "error". Its class, a name of
// Python, is only for information.
func (e Expected) MustFail() bool {
	mapping, _ := e.Value.(map[string]any)
	_, failed := mapping["error"]
	return failed && len(mapping) == 1
}

// Failed reports whether the case has ended with its expected error, so that there is no value to compare. A missing or
// unexpected error fails the test at once.
func (e Expected) Failed(t testing.TB, got any, err error) bool {
	t.Helper()
	if e.MustFail() && err == nil {
		t.Fatalf("got %v, want an error", got)
	}
	if !e.MustFail() && err != nil {
		t.Fatalf("got error %v, want %v", err, e.Value)
	}
	return err != nil
}

// representation is how Python shows an exception.
var representation = regexp.MustCompile(`\w+(Error|Exception)\(.*\)`)

// SameText reports whether an error text is as expected. The representation of a Python exception in it is only for
// information: some text must be in its place, and the text before it must be equal.
func SameText(want, got any) bool {
	wanted, isText := want.(string)
	text, wasText := got.(string)
	at := representation.FindStringIndex(wanted)
	if !isText || !wasText || at == nil {
		return want == got
	}
	return text != "" && strings.HasPrefix(text, wanted[:at[0]])
}
