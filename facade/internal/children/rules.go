package children

import (
	"iter"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

// Rules say how a child is kept, if it is not applied by every call. The zero value applies it, owned by its parent.
type Rules struct {
	// Once creates the child if it is absent, and leaves it as it is otherwise.
	Once bool
	// UntilDone makes the child until it is done: afterwards, only another declaration is made.
	UntilDone bool
	// Retain never deletes the child. AdoptFormer takes over a retained child of a former parent of the same name.
	Retain, AdoptFormer bool
}

// With returns the rules of both.
func (r Rules) With(others Rules) Rules {
	return Rules{
		Once: r.Once || others.Once, UntilDone: r.UntilDone || others.UntilDone,
		Retain: r.Retain || others.Retain, AdoptFormer: r.AdoptFormer || others.AdoptFormer,
	}
}

// Ruled is what a handler declares with rules: an object, typed or not, or a list of objects.
type Ruled struct {
	Given any
	Rules Rules
}

// IsApplyConfiguration makes package hierarchies pass it on as it is: it declares an object.
func (*Ruled) IsApplyConfiguration() {}

// objectsOf returns each object that is given with its rules, as hierarchies.Objects returns it.
func objectsOf(given any, rules Rules) iter.Seq2[Ruled, error] {
	return func(yield func(Ruled, error) bool) {
		for object, err := range hierarchies.Objects(given) {
			nested, ok := object.(*Ruled)
			if !ok {
				if !yield(Ruled{object, rules}, err) {
					return
				}
				continue
			}
			for one, err := range objectsOf(nested.Given, rules.With(nested.Rules)) {
				if !yield(one, err) {
					return
				}
			}
		}
	}
}
