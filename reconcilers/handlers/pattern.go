package handlers

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

// Pattern says what a value must be like. An absent value is nil and not present; a null is present.
type Pattern func(value any, present bool) bool

// Present is the pattern of any value, nulls included. Kopf: PRESENT.
func Present(_ any, present bool) bool { return present }

// Absent is the pattern of no value at all. Kopf: ABSENT.
func Absent(_ any, present bool) bool { return !present }

// Equals is the pattern of one JSON value: an absent one equals nothing.
func Equals(wanted any) Pattern {
	return func(value any, present bool) bool { return present && diff.Equal(value, wanted) }
}
