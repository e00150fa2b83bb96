package children

import "github.com/kopf-runtime/kopf-runtime/facade/hierarchies"

// Rules are the exceptions from the normal handling of a child. The zero value means: applied by every call, owned by
// its parent, and deleted when it is no longer declared.
type Rules struct {
	// Once creates the child if it is absent, and never updates it.
	Once bool
	// UntilDone applies the child until it is done. Afterwards, only a changed declaration is applied.
	UntilDone bool
	// Retain never deletes the child. AdoptFormer takes over a retained child of a former parent of the same name.
	Retain, AdoptFormer bool
}

// MergedWith returns the union of both rules.
func (r Rules) MergedWith(others Rules) Rules {
	return Rules{
		Once: r.Once || others.Once, UntilDone: r.UntilDone || others.UntilDone,
		Retain: r.Retain || others.Retain, AdoptFormer: r.AdoptFormer || others.AdoptFormer,
	}
}

// RuledDeclaration is a declaration with rules: an object, typed or not, or a list of objects.
type RuledDeclaration struct {
	Object any
	Rules  Rules
}

// IsApplyConfiguration makes package hierarchies return a Ruled unchanged, like any other apply configuration.
func (*RuledDeclaration) IsApplyConfiguration() {}

// eachDeclared calls the function for each declared object with its rules. Rules can be nested, and inner objects get
// the rules of all levels. Errors are those of hierarchies.Objects.
func eachDeclared(given any, rules Rules, act func(object any, rules Rules, err error)) {
	for object, err := range hierarchies.Objects(given) {
		if nested, ok := object.(*RuledDeclaration); ok {
			eachDeclared(nested.Object, rules.MergedWith(nested.Rules), act)
		} else {
			act(object, rules, err)
		}
	}
}
