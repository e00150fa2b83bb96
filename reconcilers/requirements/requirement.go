package requirements

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Requirement is what one filter, or the pattern of the field, demands of the present object, said without a function.
type Requirement struct {
	// Path is where the value is.
	Path diff.Path
	// Operator is one of those of selectors. What is not there is in no values, and only a text that is an integer is
	// greater or less.
	Operator selection.Operator
	// Values are what In, NotIn and the like compare with, as JSON has it, in the way of handlers.Equals; for
	// GreaterThan and LessThan, one text that is an integer.
	Values []any
	// Texts takes anything but a text for absent, as selectors do.
	Texts bool
}

// FromSelector says what a requirement of a selector over the "labels" or the "annotations" demands.
func FromSelector(name string, of labels.Requirement) Requirement {
	r := Requirement{Path: diff.Path{"metadata", name, of.Key()}, Operator: of.Operator(), Texts: true}
	for _, value := range of.ValuesUnsorted() {
		r.Values = append(r.Values, value)
	}
	return r
}
