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
}
