package layers

import (
	"fmt"
	"slices"
)

// RestrictedType is a type whose constants only a few packages may use, so that only they make decisions by them.
type RestrictedType struct {
	// Dir is the folder of the package that declares the type, Type its name.
	Dir, Type string
	// AllowedPaths lists the folders, without those below them, and single files that may name its constants, the type
	// itself, and fields that are called as the type is.
	AllowedPaths []string
	// ExemptFiles lists files that still do. It may only become shorter.
	ExemptFiles []string
}

// RestrictedFamily is the purpose of a handler: only its adapters may decide by it.
var RestrictedFamily = RestrictedType{
	Dir: "internal/handlers", Type: "Family",
	AllowedPaths: []string{
		"internal/handlers", "reconcilers/adapters",
		// The registration of handlers.
		"facade/admission_verbs.go", "facade/background.go", "facade/watch_events.go", "facade/index.go",
		"facade/subs.go", "facade/verbs.go", "facade/activities.go",
		"facade/internal/registry/entries.go", "facade/internal/registry/plan.go",
		"facade/internal/reviews/finalizers.go",
	},
}

// CheckRestrictedTypes reports who names the constants, the type or such a field without being listed; tests and kits
// are free to. A former file that does not any more is a breach as well: the list has to be cut.
func CheckRestrictedTypes(tree *Tree, plan Plan, secret RestrictedType) []Breach {
	constants := secret.constants(tree)
	from := tree.Module + "/" + secret.Dir
	var found []Breach
	former := map[string]bool{}
	for _, p := range tree.Packages {
		place, _ := plan.ruleFor(p.Dir)
		if p.IsNested || place.IsTestKit || slices.Contains(secret.AllowedPaths, p.Dir) {
			continue
		}
		for _, f := range p.Files {
			if f.IsTest || slices.Contains(secret.AllowedPaths, f.Path) {
				continue
			}
			for _, m := range f.Mentions {
				if m.Name != secret.Type && (m.Package != from || !slices.Contains(constants, m.Name)) {
					continue
				}
				if slices.Contains(secret.ExemptFiles, f.Path) {
					former[f.Path] = true
					continue
				}
				found = append(found, secret.leak(f, m))
			}
		}
	}
	for _, file := range secret.ExemptFiles {
		if !former[file] {
			found = append(found, Breach{file, fmt.Sprintf(
				"the file names no %s any more: take it out of the list in test/layers/restricted_types.go",
				secret.Type)})
		}
	}
	return found
}

func (s RestrictedType) leak(f File, m Mention) Breach {
	return Breach{fmt.Sprintf("%s:%d", f.Path, m.Line), fmt.Sprintf(
		"%s is named here: ask for what follows from the %s of package %s instead", m.Name, s.Type, s.Dir)}
}

// constants are those of the type, by name.
func (s RestrictedType) constants(tree *Tree) []string {
	var names []string
	for _, p := range tree.Packages {
		for _, f := range p.Files {
			for _, c := range f.Constants {
				if p.Dir == s.Dir && c.Type == s.Type {
					names = append(names, c.Name)
				}
			}
		}
	}
	return names
}
