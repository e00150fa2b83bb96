package layers

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

const (
	// MaxUpwardPercent is how many of the arrows between the files of a package may point upward, in percent.
	MaxUpwardPercent = 15
	// MinUpward is how many arrows may point upward in any case, as a percentage of a few arrows means nothing.
	MinUpward = 5
)

// Arrow says that one file of a package uses functions, methods, types, fields, variables or constants that another
// file of the package declares.
type Arrow struct {
	From, To string
	// Names are sorted.
	Names []string
}

// FileArrows are the arrows between the files of one package, without its tests.
type FileArrows struct {
	Dir string
	// All are sorted by From and To.
	All []Arrow
	// Upward are the arrows from a file to one above it, in the order of files that has the fewest of them.
	Upward []Arrow
	// Order are the files from top to bottom.
	Order []string
}

// CheckArrows reports the packages whose files use each other in circles too often. In such a package, no file can be
// understood before the others. A type that many files use belongs below them, in a file without the steps that use
// these files. Packages below examples and test are exempt.
func CheckArrows(sources fs.FS, tree *Tree, plan Plan) ([]Breach, error) {
	var found []Breach
	for _, p := range tree.Packages {
		if within(p.Dir, "examples") || within(p.Dir, "test") {
			continue
		}
		arrows, err := ArrowsOf(sources, p.Dir)
		if err != nil {
			return nil, err
		}
		limit := max(MinUpward, len(arrows.All)*MaxUpwardPercent/100)
		if rule, _ := plan.ruleFor(p.Dir); rule.MaxUpward > 0 {
			limit = rule.MaxUpward
		}
		if len(arrows.Upward) <= limit {
			continue
		}
		found = append(found, Breach{p.Dir, fmt.Sprintf(
			"%d of %d arrows between its files point upward, more than %d: move declarations down, or merge files:%s",
			len(arrows.Upward), len(arrows.All), limit, arrows.upwardText())})
	}
	return found, nil
}

func (a FileArrows) upwardText() string {
	var text strings.Builder
	for _, one := range a.Upward {
		fmt.Fprintf(&text, "\n\t%s uses %s: %s", one.From, one.To, strings.Join(one.Names, " "))
	}
	return text.String()
}

// ArrowsOf returns the arrows between the files of a folder. Other packages are not loaded: a method of a value that
// comes from a function of another package is not seen.
func ArrowsOf(sources fs.FS, dir string) (FileArrows, error) {
	names, err := fs.Glob(sources, path.Join(dir, "*.go"))
	if err != nil {
		return FileArrows{}, err
	}
	positions := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return FileArrows{}, fmt.Errorf("reading a source file: %w", err)
		}
		parsed, err := parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
		if err != nil {
			return FileArrows{}, fmt.Errorf("parsing a source file: %w", err)
		}
		files = append(files, parsed)
	}
	arrows := FileArrows{Dir: dir, All: usesBetween(positions, files)}
	arrows.sortFiles()
	return arrows, nil
}

// usesBetween type-checks the files, as far as that is possible without the packages that they import.
func usesBetween(positions *token.FileSet, files []*ast.File) []Arrow {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	checked, _ := config.Check("checked", positions, files, &info) // errors are expected
	used := map[[2]string]map[string]bool{}
	for name, object := range info.Uses {
		if object.Pkg() != checked {
			continue
		}
		ends := [2]string{
			path.Base(positions.Position(name.Pos()).Filename), path.Base(positions.Position(object.Pos()).Filename),
		}
		if ends[0] == ends[1] {
			continue
		}
		if used[ends] == nil {
			used[ends] = map[string]bool{}
		}
		used[ends][object.Name()] = true
	}
	var arrows []Arrow
	for ends, names := range used {
		arrows = append(arrows, Arrow{From: ends[0], To: ends[1], Names: slices.Sorted(maps.Keys(names))})
	}
	slices.SortFunc(arrows, func(a, b Arrow) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return arrows
}

// emptyPackages imports every package as an empty one.
type emptyPackages struct{}

func (emptyPackages) Import(name string) (*types.Package, error) {
	empty := types.NewPackage(name, path.Base(name))
	empty.MarkComplete()
	return empty, nil
}

// starts is the number of orders from which the search for the best order begins.
const starts = 32

// sortFiles moves one file at a time to its best place until no move helps. It begins with several orders, always the
// same ones, and keeps the best result.
func (a *FileArrows) sortFiles() {
	files, uses := map[string]bool{}, map[[2]string]bool{}
	for _, one := range a.All {
		files[one.From], files[one.To], uses[[2]string{one.From, one.To}] = true, true, true
	}
	order := slices.Sorted(maps.Keys(files))
	for i := range starts {
		random := rand.New(rand.NewPCG(0, uint64(i))) //nolint:gosec // not a secret
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for moved := true; moved; {
			moved = false
			for _, file := range slices.Clone(order) {
				moved = moveFile(order, file, uses) || moved
			}
		}
		var upward []Arrow
		for _, one := range a.All {
			if slices.Index(order, one.From) > slices.Index(order, one.To) {
				upward = append(upward, one)
			}
		}
		if i == 0 || len(upward) < len(a.Upward) {
			a.Order, a.Upward = slices.Clone(order), upward
		}
	}
}

// moveFile moves a file to the place with the fewest upward arrows. It returns whether these are fewer than before.
func moveFile(order []string, file string, uses map[[2]string]bool) bool {
	from := slices.Index(order, file)
	best, bestGain := from, 0
	for _, step := range []int{-1, 1} {
		gain := 0
		for to := from + step; to >= 0 && to < len(order); to += step {
			upper, lower := order[to], file
			if step > 0 {
				upper, lower = file, order[to]
			}
			// The two change places: arrows between them turn.
			if uses[[2]string{lower, upper}] {
				gain++
			}
			if uses[[2]string{upper, lower}] {
				gain--
			}
			if gain > bestGain {
				best, bestGain = to, gain
			}
		}
	}
	if best == from {
		return false
	}
	copy(order, slices.Insert(slices.Delete(slices.Clone(order), from, from+1), best, file))
	return true
}
