package vectors

import (
	"regexp"
	"strings"
	"testing"
)

// Expected is what must come out of a case.
type Expected struct {
	// Value is a JSON value as unstructured objects have them.
	Value any
}

// MustFail tells whether nothing but an error is expected: the value has the
// single key "error". Its class, a name of Python, is for information.
func (e Expected) MustFail() bool {
	mapping, _ := e.Value.(map[string]any)
	_, failed := mapping["error"]
	return failed && len(mapping) == 1
}

// Failed tells whether the case ends with the error that it must end with, so
// that there is nothing to compare. An error that is missing, and one that is
// not expected, fail the test at once.
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

// SameText tells whether a text of an error is as it must be. What represents an
// exception of Python in it is for information: something must stand there, and
// the text must be the same up to it.
func SameText(want, got any) bool {
	wanted, isText := want.(string)
	text, wasText := got.(string)
	at := representation.FindStringIndex(wanted)
	if !isText || !wasText || at == nil {
		return want == got
	}
	return text != "" && strings.HasPrefix(text, wanted[:at[0]])
}
