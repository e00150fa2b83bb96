package children

import "github.com/kopf-runtime/kopf-runtime/facade/hierarchies"

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

// eachDeclared calls the function for each object that is given, with its rules, as hierarchies.Objects returns it.
func eachDeclared(given any, rules Rules, act func(object any, rules Rules, err error)) {
	for object, err := range hierarchies.Objects(given) {
		if nested, ok := object.(*Ruled); ok {
			eachDeclared(nested.Given, rules.With(nested.Rules), act)
		} else {
			act(object, rules, err)
		}
	}
}
