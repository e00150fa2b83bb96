package layers

import (
	"fmt"
	"slices"
)

// Secret is a type whose constants only a few packages may use, so that only they make decisions by them.
type Secret struct {
	// Dir is the folder of the package that declares the type, Type its name.
	Dir, Type string
	// Known lists the folders, without those below them, and single files that may name its constants, the type itself,
	// and fields that are called as the type is.
	Known []string
	// Former lists files that still do. It may only become shorter.
	Former []string
}

// Families is the purpose of a handler: only its adapters may decide by it.
var Families = Secret{
	Dir: "reconcilers/handlers", Type: "Family",
	Known: []string{
		"reconcilers/handlers", "reconcilers/adapters",
		// The registration of handlers.
		"facade/admission.go", "facade/background.go", "facade/event.go", "facade/index.go",
		"facade/on_child.go", "facade/subs.go", "facade/verbs.go", "facade/activities.go",
		"facade/internal/registry/entries.go", "facade/internal/registry/plan.go",
		"facade/internal/reviews/finalizers.go",
	},
}

// Leaks reports who names the constants, the type or such a field without being listed; tests and kits are free to. A
// former file that does not any more is a breach as well: the list has to be cut.
func Leaks(tree *Tree, plan Plan, secret Secret) []Breach {
	constants := secret.constants(tree)
	from := tree.Module + "/" + secret.Dir
	var found []Breach
	former := map[string]bool{}
	for _, p := range tree.Packages {
		place, _ := plan.place(p.Dir)
		if p.Nested || place.Kit || slices.Contains(secret.Known, p.Dir) {
			continue
		}
		for _, f := range p.Files {
			if f.Test || slices.Contains(secret.Known, f.Path) {
				continue
			}
			for _, m := range f.Mentions {
				if m.Name != secret.Type && (m.Package != from || !slices.Contains(constants, m.Name)) {
					continue
				}
				if slices.Contains(secret.Former, f.Path) {
					former[f.Path] = true
					continue
				}
				found = append(found, secret.leak(f, m))
			}
		}
	}
	for _, file := range secret.Former {
		if !former[file] {
			found = append(found, Breach{file, fmt.Sprintf(
				"the file names no %s any more: take it out of the list in test/layers/secrets.go", secret.Type)})
		}
	}
	return found
}

func (s Secret) leak(f File, m Mention) Breach {
	return Breach{fmt.Sprintf("%s:%d", f.Path, m.Line), fmt.Sprintf(
		"%s is named here: ask for what follows from the %s of package %s instead", m.Name, s.Type, s.Dir)}
}

// constants are those of the type, by name.
func (s Secret) constants(tree *Tree) []string {
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
