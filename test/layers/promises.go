package layers

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// NotPublic begins the doc.go of every product package that is not in [Promised].
const NotPublic = "Not part of the public API."

// Promised are the folders of the packages with a stable API, see docs/stability.md.
var Promised = []string{
	"facade", "facade/facadetest", "facade/facadetest/devcluster", "facade/facadetest/explorer",
	"facade/facadetest/memapi", "facade/hierarchies", "facade/rules", "storage/diff", "storage/diffbase",
	"storage/progress", "webhooks/tunnels",
	"webhooks/tunnels/ngrok", "webhooks/tunnels/tunnelstest",
}

// Promises reports packages whose doc.go does not say whether they belong to the public API, and code outside of test/
// that imports packages of test/. Tests may import them.
func Promises(tree *Tree, promised []string) []Breach {
	var found []Breach
	for _, p := range tree.Packages {
		if p.Name == "main" || within(p.Dir, "examples") || within(p.Dir, "test") {
			continue
		}
		for _, f := range p.Files {
			says := strings.HasPrefix(f.Comment, NotPublic)
			switch public := slices.Contains(promised, p.Dir); {
			case path.Base(f.Path) != "doc.go":
			case public && says:
				found = append(
					found,
					Breach{f.Path, "the package is promised, and its comment says that it is not public"},
				)
			case !public && !says:
				found = append(found, Breach{f.Path, "begin the package comment with: " + NotPublic})
			}
			if !f.IsTest {
				found = append(found, importsOfTests(tree, f)...)
			}
		}
	}
	return found
}

func importsOfTests(tree *Tree, f File) (found []Breach) {
	for _, i := range f.Imports {
		if dir, own := strings.CutPrefix(i.Path, tree.Module+"/"); own && within(dir, "test") {
			found = append(found, Breach{f.Path, "it imports " + dir + ": only tests may import packages of test/"})
		}
	}
	return found
}

// Replacements reports promised modules whose go.mod has a replace: it does not apply to their users, who would get
// other sources than the tested ones. A go.work beside it serves the sources of the root.
func Replacements(sources fs.FS, promised []string) (found []Breach, err error) {
	for _, dir := range promised {
		name := path.Join(dir, "go.mod")
		text, err := fs.ReadFile(sources, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a module file: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "replace") {
				found = append(found, Breach{name, "a released module has a replace: use its go.work instead"})
			}
		}
	}
	return found, nil
}
