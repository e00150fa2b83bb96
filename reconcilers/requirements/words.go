package requirements

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

// Words are what the criteria of a handler demand, as its registration says it: for people who ask why the handler was
// not called. They decide nothing, and any of them may be missing.
type Words struct {
	// Filters are those of the filters, in the same order; there may be fewer of them.
	Filters []Criterion
	// Value, From and To are those of the patterns of the field.
	Value, From, To string
}

// Criterion is what one filter demands.
type Criterion struct {
	// Text is the call that has made the filter, such as WithLabel("tier", "prod").
	Text string
	// Path is what the filter looks at; nil is the object as a whole, by a function of the user's.
	Path diff.Path
	// OfChange is true for a function of the user's that looks at what has happened to the object, too.
	OfChange bool
}

// Sight is what criteria look at, beside the essence of objects and the metadata that users write.
type Sight int

// The sights, the widest first.
const (
	// SeesChange is also what has happened to the object.
	SeesChange Sight = iota
	// SeesObject is all of the object, at any time.
	SeesObject
	// SeesEssence is nothing more: neither the status nor the generation.
	SeesEssence
)

// Sight is the widest of the filters.
func (w Words) Sight() Sight {
	sees := SeesEssence
	for _, filter := range w.Filters {
		if filter.OfChange {
			return SeesChange
		}
		sees = min(sees, SightOf(filter.Path))
	}
	return sees
}

// SightOf is what it takes to see a field.
func SightOf(path diff.Path) Sight {
	if len(path) == 0 || path[0] == "status" || path[0] == "metadata" && (len(path) == 1 || path[1] == "generation") {
		return SeesObject
	}
	return SeesEssence
}
