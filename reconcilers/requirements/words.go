package requirements

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

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

// WidestSight returns the widest sight of the filters.
func (w Words) WidestSight() Sight {
	sees := SeesEssence
	for _, filter := range w.Filters {
		if filter.OfChange {
			return SeesChange
		}
		// Wider sights have lower values.
		sees = min(sees, SightOf(filter.Path))
	}
	return sees
}

// SightOf returns the sight that a field needs. An empty path is the whole object.
func SightOf(path diff.Path) Sight {
	if len(path) == 0 || path[0] == "status" || path[0] == "metadata" && (len(path) == 1 || path[1] == "generation") {
		return SeesObject
	}
	return SeesEssence
}
