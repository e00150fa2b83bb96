package layers

import "fmt"

// MaxExports is how many exported names a package may have unless its [PackageRule] says otherwise.
const MaxExports = 25

// Figure is the number of exported names of one package, and what its place allows.
type Figure struct {
	Dir            string
	Exports, Limit int
}

// Exports counts the exported names of the root module's packages as go doc lists them: without methods; a group of
// constants or variables counts once, and constants of an exported type count with it. Kits have no limit, and are left
// out, as are packages without a place, which [CheckImports] reports.
func Exports(tree *Tree, plan Plan) []Figure {
	var figures []Figure
	for _, p := range tree.Packages {
		place, ok := plan.ruleFor(p.Dir)
		if p.IsNested || !ok || place.IsTestKit || p.Name == "main" {
			continue
		}
		figure := Figure{Dir: p.Dir, Limit: MaxExports}
		if place.Exports > 0 {
			figure.Limit = place.Exports
		}
		for _, f := range p.Files {
			if !f.IsTest {
				figure.Exports += len(f.Exports)
			}
		}
		figures = append(figures, figure)
	}
	return figures
}

// CheckExportCounts reports the packages with more exported names than their places allow.
func CheckExportCounts(tree *Tree, plan Plan) []Breach {
	var found []Breach
	for _, f := range Exports(tree, plan) {
		if f.Exports > f.Limit {
			found = append(found, Breach{f.Dir, fmt.Sprintf(
				"the package exports %d names: %d are enough; unexport some, or make two packages of it",
				f.Exports, f.Limit)})
		}
	}
	return found
}
