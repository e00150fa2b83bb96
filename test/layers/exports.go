package layers

import "fmt"

// MaxExports is how many exported names a package may have unless its [Place] says otherwise.
const MaxExports = 25

// Figure is the number of exported names of one package, and what its place allows.
type Figure struct {
	Dir         string
	Exports, Of int
}

// Exports counts the exported names of the root module's packages as go doc lists them: without methods; a group of
// constants or variables counts once, and constants of an exported type count with it. Kits have no limit, and are left
// out, as are packages without a place, which [Walls] reports.
func Exports(tree *Tree, plan Plan) []Figure {
	var figures []Figure
	for _, p := range tree.Packages {
		place, ok := plan.place(p.Dir)
		if p.Nested || !ok || place.Kit || p.Name == "main" {
			continue
		}
		figure := Figure{Dir: p.Dir, Of: MaxExports}
		if place.Exports > 0 {
			figure.Of = place.Exports
		}
		for _, f := range p.Files {
			if !f.Test {
				figure.Exports += len(f.Exports)
			}
		}
		figures = append(figures, figure)
	}
	return figures
}

// Crowds reports the packages with more exported names than their places allow.
func Crowds(tree *Tree, plan Plan) []Breach {
	var found []Breach
	for _, f := range Exports(tree, plan) {
		if f.Exports > f.Of {
			found = append(found, Breach{f.Dir, fmt.Sprintf(
				"the package exports %d names: %d are enough; unexport some, or make two packages of it",
				f.Exports, f.Of)})
		}
	}
	return found
}
