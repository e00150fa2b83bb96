package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Tree is the Go source of a repository, parsed; nothing of it is type-checked.
type Tree struct {
	// Module is the path of the module at the root.
	Module string
	// Packages are sorted by folder. A folder's external test package
	// (package x_test) counts as part of the folder's package.
	Packages []Package
}

// Package is one folder with Go files in it.
type Package struct {
	// Dir is the folder relative to the root, "." for the root itself.
	Dir string
	// IsNested says that the folder belongs to another module, one that has a
	// go.mod of its own below the root.
	IsNested bool
	// Name is the name in the package clauses, without "_test".
	Name  string
	Files []File
}

// File is one Go file of a package.
type File struct {
	// Path is relative to the root of the repository.
	Path string
	// IsTest is true for a _test.go file, Generated for one that a tool has written.
	IsTest, IsGenerated bool
	// Comment is the text of the package comment.
	Comment string
	// Lines counts the lines of the file, blank ones and comments included.
	Lines   int
	Imports []Import
	Funcs   []Func
	// Guards are the uses of guards against panics, by the names of the functions and with the lines of the uses.
	Guards []Func
	// Exports are the exported top-level names that the file declares, without methods.
	Exports   []string
	Constants []Constant
	Mentions  []Mention
	// LongLines are the lines of more than [MaxColumns].
	LongLines []Line
}

// Line is one line by its number, and how many columns it has.
type Line struct{ Number, Columns int }

// Import is one import declaration.
type Import struct {
	Path string
	Line int
}

// Func is one function, method, or function literal outside of any function.
type Func struct {
	// Name is "Func", "Type.Method", or "func literal".
	Name string
	// Line is where it begins, Lines how long it is, from "func" to "}".
	Line, Lines int
}

// Load parses every Go file under the root of fsys, whatever its build tags.
// Folders that the go command ignores (testdata, vendor, names that begin with
// "." or "_") are skipped. A file that does not parse is an error.
func Load(fsys fs.FS) (*Tree, error) {
	module, err := modulePath(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	l := &loader{fsys: fsys, packages: map[string]*Package{}, nested: map[string]bool{".": false}}
	if err := fs.WalkDir(fsys, ".", l.visit); err != nil {
		return nil, fmt.Errorf("reading the tree: %w", err)
	}
	tree := &Tree{Module: module}
	for _, p := range l.packages {
		tree.Packages = append(tree.Packages, *p)
	}
	slices.SortFunc(tree.Packages, func(a, b Package) int { return strings.Compare(a.Dir, b.Dir) })
	return tree, nil
}

// modulePath reads the path in a go.mod's module line.
func modulePath(fsys fs.FS, name string) (string, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return "", fmt.Errorf("reading the module file: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.Trim(strings.TrimSpace(rest), `"`), nil
		}
	}
	return "", fmt.Errorf("reading the module file %s: no module line", name)
}

// loader collects packages while the tree is walked, folders before files.
type loader struct {
	fsys     fs.FS
	packages map[string]*Package
	nested   map[string]bool // per folder: is it of another module than the root's?
}

func (l *loader) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if entry.IsDir() {
		return l.enter(name)
	}
	if path.Ext(name) != ".go" || strings.HasPrefix(entry.Name(), "_") || strings.HasPrefix(entry.Name(), ".") {
		return nil
	}
	return l.add(name)
}

func (l *loader) enter(dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	_, err := fs.Stat(l.fsys, path.Join(dir, "go.mod"))
	l.nested[dir] = err == nil || l.nested[path.Dir(dir)]
	return nil
}

func (l *loader) add(name string) error {
	text, err := fs.ReadFile(l.fsys, name)
	if err != nil {
		return fmt.Errorf("reading a source file: %w", err)
	}
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing a source file: %w", err)
	}
	dir := path.Dir(name)
	if l.packages[dir] == nil {
		l.packages[dir] = &Package{Dir: dir, IsNested: l.nested[dir],
			Name: strings.TrimSuffix(parsed.Name.Name, "_test")}
	}
	l.packages[dir].Files = append(l.packages[dir].Files, describe(name, string(text), positions, parsed))
	return nil
}
