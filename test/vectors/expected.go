package vectors

import "testing"

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
