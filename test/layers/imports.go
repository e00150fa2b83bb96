package layers

import (
	"fmt"
	"slices"
	"strings"
)

// Breach is one place where a rule of the house is broken.
type Breach struct {
	// Location is "file:line", or a folder.
	Location string
	// Message says which rule is broken, by what, and what to do.
	Message string
}

// String gives the form "where: what", which editors can jump to.
func (b Breach) String() string { return b.Location + ": " + b.Message }

// frameworks are import paths, with everything below them, that belong to
// tests: a product package that imports one links it into every operator.
var frameworks = []string{
	"testing",
	"net/http/httptest",
	"github.com/google/go-cmp",
	"github.com/onsi/ginkgo",
	"github.com/onsi/gomega",
	"github.com/stretchr/testify",
	"go.uber.org/goleak",
	"sigs.k8s.io/controller-runtime/pkg/client/fake",
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor",
	"sigs.k8s.io/controller-runtime/pkg/envtest",
}

// CheckImports checks the imports of the root module's packages against a plan:
//
//   - every package has a place;
//   - other files than tests import lower layers only: neither upper ones nor
//     neighbours of their own layer, no kits, no test frameworks, and from
//     outside of the module what the place allows. A kit may use test
//     frameworks and lower kits;
//   - _test.go files may import neighbours as well, the kits of their layer or
//     below, and a kit inside their own folder (facadetest for facade), but
//     never an upper layer: what needs that belongs to the upper layer's tests.
//
// Modules nested in the tree are passed over: the Go command keeps them apart.
func CheckImports(tree *Tree, plan Plan) []Breach {
	var found []Breach
	for _, p := range tree.Packages {
		if p.IsNested {
			continue
		}
		from, ok := plan.ruleFor(p.Dir)
		if !ok {
			found = append(found, Breach{p.Dir, "the package has no place: give it a layer in test/layers/plan.go"})
			continue
		}
		for _, f := range p.Files {
			for _, i := range f.Imports {
				if what := checkImport(tree.Module, plan, p.Dir, from, f, i.Path); what != "" {
					found = append(found, Breach{fmt.Sprintf("%s:%d", f.Path, i.Line), what})
				}
			}
		}
	}
	return found
}

// checkImport returns the error of one import, or an empty string.
func checkImport(module string, plan Plan, dir string, from PackageRule, f File, target string) string {
	to, ours := folderOf(module, target)
	if !ours && f.IsTest {
		return "" // Tests may import any foreign package.
	}
	if !ours {
		return judgeOutside(dir, from, target)
	}
	place, ok := plan.ruleFor(to)
	if !ok {
		return fmt.Sprintf("%s imports %s, which has no place in test/layers/plan.go", dir, to)
	}
	if f.IsTest {
		return judgeTest(dir, to, from, place)
	}
	return judgeProduct(dir, to, from, place)
}

// folderOf turns an import path of the module into a folder of the tree.
func folderOf(module, target string) (dir string, ours bool) {
	if target == module {
		return ".", true
	}
	return strings.CutPrefix(target, module+"/")
}

// judgeOutside checks an import of a file that is not a test from another
// module or the standard library.
func judgeOutside(dir string, from PackageRule, target string) string {
	beneath := func(root string) bool { return within(target, root) }
	if !from.IsTestKit && slices.ContainsFunc(frameworks, beneath) {
		return fmt.Sprintf(
			"%s imports %s outside of tests: importers of the package would link a test framework", dir, target,
		)
	}
	if from.AllowedImports != nil && !standard(target) && !slices.ContainsFunc(from.AllowedImports, beneath) {
		return fmt.Sprintf(
			"%s imports %s: the package is kept free of it (see Only in test/layers/plan.go)", dir, target,
		)
	}
	return ""
}

// judgeProduct checks an import within the module by a file that is not a test.
func judgeProduct(dir, to string, from, place PackageRule) string {
	switch {
	case from.GroupsByFolder && place.Dir == from.Dir && from.groupOf(dir) == place.groupOf(to):
		return ""
	case place.IsTestKit && !from.IsTestKit:
		return fmt.Sprintf("%s imports the test kit %s outside of tests", dir, to)
	case place.Layer >= from.Layer:
		return fmt.Sprintf("%s (layer %d) imports %s (layer %d): only lower layers may be imported",
			dir, from.Layer, to, place.Layer)
	}
	return ""
}

// judgeTest checks an import within the module by a _test.go file.
func judgeTest(dir, to string, from, place PackageRule) string {
	ownKit := place.IsTestKit && (within(to, dir) || within(to, "test/vectors"))
	if place.Layer <= from.Layer || ownKit {
		return ""
	}
	return fmt.Sprintf("the tests of %s (layer %d) import %s (layer %d): no upper layer may be imported",
		dir, from.Layer, to, place.Layer)
}

// standard reports whether an import belongs to the standard library: the first element of any other path has a dot.
func standard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return !strings.Contains(first, ".")
}
