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
	"path"
	"slices"
	"strings"
)

const (
	// MaxUpward is the largest part of the arrows between the files of a package, in percent, that may point upward.
	MaxUpward = 15
	// fewArrows is the number of upward arrows that a package may have in any case: percentages of a
	// handful of arrows mean nothing.
	fewArrows = 3
)

// Arrow says that one file of a package uses names that another one declares.
type Arrow struct {
	From, To string
	// Names are the used functions, methods, types, fields, variables and constants, sorted.
	Names []string
}

// Arrows are those between the files of one package.
type Arrows struct {
	// Dir is the folder of the package.
	Dir string
	// All are sorted by From and To.
	All []Arrow
	// Upward are those of All that point from a file to one above it, if the files are ordered so that as many arrows
	// as possible point downward.
	Upward []Arrow
	// Order are the files from top to bottom.
	Order []string
}

// FileArrows reads the package in a folder, without its tests. Other packages are not loaded, so a
// method that is called on a value that another package returned is not seen.
func FileArrows(sources fs.FS, dir string) (Arrows, error) {
	names, err := fs.Glob(sources, path.Join(dir, "*.go"))
	if err != nil {
		return Arrows{}, err
	}
	positions := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return Arrows{}, fmt.Errorf("reading a source file: %w", err)
		}
		parsed, err := parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
		if err != nil {
			return Arrows{}, fmt.Errorf("parsing a source file: %w", err)
		}
		files = append(files, parsed)
	}
	found := Arrows{Dir: dir, All: usesBetween(positions, files)}
	found.order()
	return found, nil
}

// usesBetween type-checks the files as far as that is possible without the packages that they import.
func usesBetween(positions *token.FileSet, files []*ast.File) []Arrow {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noPackages{}, Error: func(error) {}, FakeImportC: true}
	checked, _ := config.Check("checked", positions, files, &info)
	used := map[[2]string]map[string]bool{}
	for name, object := range info.Uses {
		if object.Pkg() != checked || !object.Pos().IsValid() {
			continue
		}
		ends := [2]string{fileOf(positions, name.Pos()), fileOf(positions, object.Pos())}
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
		arrow := Arrow{From: ends[0], To: ends[1]}
		for name := range names {
			arrow.Names = append(arrow.Names, name)
		}
		slices.Sort(arrow.Names)
		arrows = append(arrows, arrow)
	}
	slices.SortFunc(arrows, func(a, b Arrow) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return arrows
}

func fileOf(positions *token.FileSet, at token.Pos) string {
	return path.Base(positions.Position(at).Filename)
}

// noPackages is an importer that knows no package.
type noPackages struct{}

func (noPackages) Import(name string) (*types.Package, error) {
	empty := types.NewPackage(name, path.Base(name))
	empty.MarkComplete()
	return empty, nil
}

// order sorts the files so that few arrows point upward. It moves one file at a time to its best
// place, until no move helps.
func (a *Arrows) order() {
	files := map[string]bool{}
	for _, arrow := range a.All {
		files[arrow.From], files[arrow.To] = true, true
	}
	a.Order = slices.Sorted(maps.Keys(files))
	uses := map[[2]string]bool{}
	for _, arrow := range a.All {
		uses[[2]string{arrow.From, arrow.To}] = true
	}
	for moved := true; moved; {
		moved = false
		for _, file := range slices.Clone(a.Order) {
			moved = moveFile(a.Order, file, uses) || moved
		}
	}
	for _, arrow := range a.All {
		if slices.Index(a.Order, arrow.From) > slices.Index(a.Order, arrow.To) {
			a.Upward = append(a.Upward, arrow)
		}
	}
}

// moveFile moves a file to where the fewest arrows point upward, and returns whether these are fewer than before.
func moveFile(order []string, file string, uses map[[2]string]bool) bool {
	from := slices.Index(order, file)
	best, gain := from, 0
	for _, step := range []int{-1, 1} {
		now := 0
		for to := from + step; to >= 0 && to < len(order); to += step {
			above, below := file, order[to]
			if step < 0 {
				above, below = below, file
			}
			// The order of the two turns: arrows from the upper to the lower one point upward then.
			now += count(uses, below, above) - count(uses, above, below)
			if now > gain {
				best, gain = to, now
			}
		}
	}
	if best == from {
		return false
	}
	rest := slices.Delete(slices.Clone(order), from, from+1)
	copy(order, slices.Insert(rest, best, file))
	return true
}

func count(uses map[[2]string]bool, from, to string) int {
	if uses[[2]string{from, to}] {
		return 1
	}
	return 0
}
