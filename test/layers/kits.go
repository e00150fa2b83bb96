package layers

import (
	"fmt"
	"slices"
	"strings"
)

// CheckTestKits checks that what exists for tests is marked as such in the plan, so that [CheckImports] keeps it out of
// products:
//
//   - whatever stands in the folder of a kit is a kit as well;
//   - an internal package that only kits import is one of them;
//   - no product of a nested module imports a kit of the root module, where Walls does not look.
func CheckTestKits(tree *Tree, plan Plan) []Breach {
	var found []Breach
	users := importers(tree, plan)
	for _, p := range tree.Packages {
		if p.IsNested {
			found = append(found, nestedKits(tree, plan, p)...)
			continue
		}
		place, ok := plan.ruleFor(p.Dir)
		if !ok || place.IsTestKit || place.GroupsByFolder {
			continue // Walls reports packages without a place
		}
		if kit := kitAround(plan, p.Dir); kit != "" {
			found = append(found, Breach{p.Dir, fmt.Sprintf(
				"it stands in the folder of the test kit %s: mark it with Kit in test/layers/plan.go", kit)})
		} else if internal(p.Dir) && users[p.Dir].byKits && !users[p.Dir].byProducts {
			found = append(found, Breach{
				p.Dir, "only test kits import it: mark it with Kit in test/layers/plan.go",
			})
		}
	}
	return found
}

// usage says who imports a package outside of tests.
type usage struct{ byKits, byProducts bool }

func importers(tree *Tree, plan Plan) map[string]usage {
	users := map[string]usage{}
	for _, p := range tree.Packages {
		place, _ := plan.ruleFor(p.Dir)
		for _, f := range p.Files {
			for _, i := range f.Imports {
				to, ours := folderOf(tree.Module, i.Path)
				if !ours || f.IsTest {
					continue
				}
				use := users[to]
				use.byKits, use.byProducts = use.byKits || place.IsTestKit, use.byProducts || !place.IsTestKit
				users[to] = use
			}
		}
	}
	return users
}

// nestedKits are the imports of kits by a package of another module.
func nestedKits(tree *Tree, plan Plan, p Package) (found []Breach) {
	if place, ok := plan.ruleFor(p.Dir); ok && place.IsTestKit {
		return nil // it exists for tests itself, as all under test
	}
	for _, f := range p.Files {
		for _, i := range f.Imports {
			to, ours := folderOf(tree.Module, i.Path)
			if place, ok := plan.ruleFor(to); ours && ok && place.IsTestKit && !f.IsTest {
				found = append(found, Breach{fmt.Sprintf("%s:%d", f.Path, i.Line), fmt.Sprintf(
					"%s imports the test kit %s outside of tests", p.Dir, to)})
			}
		}
	}
	return found
}

// kitAround is the kit in whose folder another package stands.
func kitAround(plan Plan, dir string) string {
	at := slices.IndexFunc(plan, func(one PackageRule) bool {
		return one.IsTestKit && one.Dir != dir && !strings.HasSuffix(one.Dir, "/...") && within(dir, one.Dir)
	})
	if at < 0 {
		return ""
	}
	return plan[at].Dir
}

func internal(dir string) bool { return slices.Contains(strings.Split(dir, "/"), "internal") }
