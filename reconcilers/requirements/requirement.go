package requirements

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Requirement is the condition of one filter, or of the pattern of the field, on the current object.
type Requirement struct {
	// Path is the path of the value in the object.
	Path diff.Path
	// Operator is one of the operators of selectors. A missing value satisfies NotIn and not In. GreaterThan and
	// LessThan match only texts that are integers.
	Operator selection.Operator
	// Values are the operands as decoded JSON, compared as by handlers.Equals. GreaterThan and LessThan have one text
	// that is an integer.
	Values []any
	// Texts treats a value that is not a text as missing, as selectors do.
	Texts bool
}

// FromSelector converts one requirement of a selector. The name is "labels" or "annotations": the part of the metadata
// that the selector applies to.
func FromSelector(name string, of labels.Requirement) Requirement {
	r := Requirement{Path: diff.Path{"metadata", name, of.Key()}, Operator: of.Operator(), Texts: true}
	// The order of the values has no meaning.
	for _, value := range of.ValuesUnsorted() {
		r.Values = append(r.Values, value)
	}
	return r
}
