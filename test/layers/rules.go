package layers

import (
	"fmt"
	"path"
)

const (
	// MaxFileLines is the length that a Go file stays under.
	MaxFileLines = 400
	// MaxFuncLines is the length that a function outside of tests never exceeds.
	MaxFuncLines = 60
	// MaxColumns is how long a line may be, a tab counting as four columns.
	MaxColumns = 120

	tabWidth = 4
)

// Rules checks the rules on size and documentation in every module of the
// tree: files shorter than [MaxFileLines]; functions outside of tests no longer
// than [MaxFuncLines]; lines no longer than [MaxColumns]; a package comment in every package, which stands in
// doc.go unless the package is a command, or under examples/ or test/.
// Generated files are exempt.
func Rules(tree *Tree) []Breach {
	var found []Breach
	for _, p := range tree.Packages {
		found = append(found, undocumented(p)...)
		for _, f := range p.Files {
			if !f.IsGenerated {
				found = append(found, oversized(f)...)
			}
		}
	}
	return found
}

func oversized(f File) []Breach {
	var found []Breach
	if f.Lines >= MaxFileLines {
		found = append(
			found, Breach{f.Path, fmt.Sprintf("the file has %d lines: cut it below %d", f.Lines, MaxFileLines)},
		)
	}
	for _, line := range f.LongLines {
		where := fmt.Sprintf("%s:%d", f.Path, line.Number)
		found = append(found, Breach{where, fmt.Sprintf(
			"the line has %d columns: break it at %d or before", line.Columns, MaxColumns)})
	}
	for _, fn := range f.Funcs {
		if !f.IsTest && fn.Lines > MaxFuncLines {
			where := fmt.Sprintf("%s:%d", f.Path, fn.Line)
			found = append(
				found,
				Breach{where, fmt.Sprintf("%s has %d lines: cut it to %d or less", fn.Name, fn.Lines, MaxFuncLines)},
			)
		}
	}
	return found
}

// undocumented looks for the package comment where a reader would. A folder
// with nothing but tests may have it in any of its files.
func undocumented(p Package) []Breach {
	anywhere := p.Name == "main" || within(p.Dir, "examples") || within(p.Dir, "test")
	onlyTests := true
	for _, f := range p.Files {
		onlyTests = onlyTests && f.IsTest
	}
	for _, f := range p.Files {
		home := path.Base(f.Path) == "doc.go"
		if f.Comment != "" && (home || onlyTests || anywhere && !f.IsTest) {
			return nil
		}
	}
	if anywhere {
		return []Breach{{p.Dir, "the package has no comment: describe its purpose above a package clause"}}
	}
	return []Breach{{p.Dir, "the package has no doc.go with a package comment"}}
}
