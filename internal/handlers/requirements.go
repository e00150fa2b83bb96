package handlers

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Requirement is the condition of one filter, or of the pattern of the field, on the current object, as data. It is for
// evaluation elsewhere, such as by API servers for admission. It can demand less than its filter: use it to narrow a
// query, never to make the decision.
type Requirement struct {
	// Path is the path of the value in the object.
	Path diff.Path
	// Operator is one of the operators of selectors. A missing value satisfies NotIn and not In. GreaterThan and
	// LessThan match only texts that are integers.
	Operator selection.Operator
	// Values are the operands as decoded JSON, compared as by [EqualTo]. GreaterThan and LessThan have one text
	// that is an integer.
	Values []any
	// Texts treats a value that is not a text as missing, as selectors do.
	Texts bool
}

// RequirementFromSelector converts one requirement of a selector. The name is "labels" or "annotations": the part of
// the metadata that the selector applies to.
func RequirementFromSelector(name string, of labels.Requirement) Requirement {
	r := Requirement{Path: diff.Path{"metadata", name, of.Key()}, Operator: of.Operator(), Texts: true}
	// The order of the values has no meaning.
	for _, value := range of.ValuesUnsorted() {
		r.Values = append(r.Values, value)
	}
	return r
}

// maxSelectorLength is the maximum number of characters of a selector. Selectors are part of URLs, and servers and
// proxies limit the length of URLs.
const maxSelectorLength = 1000

// Words describe the criteria of a handler in the form of its registration. They explain to users why the handler was
// not called. They do not decide anything, and any of them may be missing.
type Words struct {
	// Filters describe the filters, in the same order. The list may be shorter than that of the filters.
	Filters []Criterion
	// Value, From and To describe the patterns of the field.
	Value, From, To string
}

// Criterion describes one filter.
type Criterion struct {
	// Text is the call that created the filter, such as WithLabel("tier", "prod").
	Text string
	// Path is the part that the filter reads; nil is the whole object, for a user's function.
	Path diff.Path
	// OfChange is true for a user's function that also reads the change itself.
	OfChange bool
}

// Sight is the part of an object that criteria read, in addition to its essence and to the metadata that users write.
type Sight int

// The sights, from the widest to the narrowest.
const (
	// SeesChange includes the change itself.
	SeesChange Sight = iota
	// SeesObject includes the whole current object.
	SeesObject
	// SeesEssence includes nothing more: neither the status nor the generation.
	SeesEssence
)

// widestSight returns the widest sight of the filters.
func (w Words) widestSight() Sight {
	sees := SeesEssence
	for _, filter := range w.Filters {
		if filter.OfChange {
			return SeesChange
		}
		// Wider sights have lower values.
		sees = min(sees, sightOf(filter.Path))
	}
	return sees
}

// sightOf returns the sight that a field needs. An empty path is the whole object.
func sightOf(path diff.Path) Sight {
	if len(path) == 0 || path[0] == "status" || path[0] == "metadata" && (len(path) == 1 || path[1] == "generation") {
		return SeesObject
	}
	return SeesEssence
}
