package documents

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the import path of the sources.
const module = "github.com/kopf-runtime/kopf-runtime/"

// API lists what users can import of some packages: every exported declaration without its comments, and after it what
// an alias of a type of this module stands for. One line is one thing, so that a change is one line of a review.
func API(sources fs.FS, packages ...string) (string, error) {
	listing := &listing{sources: sources, packages: map[string]*doc.Package{}}
	for _, one := range packages {
		if err := listing.packageAt(one); err != nil {
			return "", fmt.Errorf("listing package %s: %w", one, err)
		}
	}
	return listing.text.String(), nil
}

// Names returns the exported names of a package, and its exported methods as "Type.Method".
func Names(sources fs.FS, directory string) (names, methods []string, err error) {
	l := &listing{sources: sources, packages: map[string]*doc.Package{}}
	p, err := l.parse(directory)
	if err != nil {
		return nil, nil, err
	}
	values, functions := slices.Concat(p.Consts, p.Vars), p.Funcs
	for _, one := range p.Types {
		if token.IsExported(one.Name) {
			names = append(names, one.Name)
		}
		values, functions = slices.Concat(values, one.Consts, one.Vars), slices.Concat(functions, one.Funcs)
		for _, method := range one.Methods {
			methods = append(methods, one.Name+"."+method.Name)
		}
	}
	for _, value := range values {
		names = append(names, slices.DeleteFunc(slices.Clone(value.Names), func(name string) bool {
			return !token.IsExported(name)
		})...)
	}
	for _, function := range functions {
		names = append(names, function.Name)
	}
	slices.Sort(names)
	return names, methods, nil
}

// listing is one under way.
type listing struct {
	sources  fs.FS
	packages map[string]*doc.Package
	files    *token.FileSet
	text     bytes.Buffer
}

// packageAt lists one package.
func (l *listing) packageAt(directory string) error {
	p, err := l.parse(directory)
	if err != nil {
		return err
	}
	fmt.Fprintf(&l.text, "package %s\n", directory)
	l.values(p.Consts, p.Vars)
	for _, function := range p.Funcs {
		l.declare(function.Decl)
	}
	for _, one := range p.Types {
		if err := l.typeOf(directory, one); err != nil {
			return err
		}
	}
	l.text.WriteByte('\n')
	return nil
}

// parse reads the exported declarations of a package.
func (l *listing) parse(directory string) (*doc.Package, error) {
	if known := l.packages[directory]; known != nil {
		return known, nil
	}
	names, err := fs.Glob(l.sources, path.Join(directory, "*.go"))
	if err != nil {
		return nil, err
	}
	if l.files == nil {
		l.files = token.NewFileSet()
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(l.sources, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(l.files, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no package in %s", directory)
	}
	p, err := doc.NewFromFiles(l.files, files, module+directory)
	l.packages[directory] = p
	return p, err
}

// typeOf lists a type with its constants, constructors and methods.
func (l *listing) typeOf(directory string, one *doc.Type) error {
	l.declare(one.Decl)
	l.values(one.Consts, one.Vars)
	for _, function := range slices.Concat(one.Funcs, one.Methods) {
		l.declare(function.Decl)
	}
	return l.aliased(directory, one)
}

// aliased lists what an alias stands for, without its constructors: these are for the package that has it.
func (l *listing) aliased(directory string, one *doc.Type) error {
	spec, ok := one.Decl.Specs[0].(*ast.TypeSpec)
	if !ok || !spec.Assign.IsValid() {
		return nil
	}
	target, ok := spec.Type.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	home := l.importOf(directory, fmt.Sprint(target.X))
	if home == "" {
		return nil
	}
	meant, err := l.parse(home)
	if err != nil {
		return err
	}
	for _, other := range meant.Types {
		if other.Name != target.Sel.Name {
			continue
		}
		fmt.Fprintf(&l.text, "which is %s.%s:\n", path.Base(home), other.Name)
		l.declare(other.Decl)
		for _, method := range other.Methods {
			l.declare(method.Decl)
		}
		return nil
	}
	return fmt.Errorf("package %s has no type %s", home, target.Sel.Name)
}

// importOf is the folder of a package of this module by its name in the files of another one; empty for other modules.
func (l *listing) importOf(directory, name string) (home string) {
	names, _ := fs.Glob(l.sources, path.Join(directory, "*.go"))
	for _, file := range names {
		source, err := fs.ReadFile(l.sources, file)
		if err != nil {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		if err != nil {
			continue
		}
		for _, imported := range parsed.Imports {
			where, _ := strconv.Unquote(imported.Path.Value)
			if own, ok := strings.CutPrefix(where, module); ok && path.Base(own) == name {
				return own
			}
		}
	}
	return ""
}

func (l *listing) values(groups ...[]*doc.Value) {
	for _, group := range groups {
		for _, value := range group {
			l.declare(value.Decl)
		}
	}
}

// declare prints a declaration without comments and bodies.
func (l *listing) declare(declared ast.Decl) {
	switch declared := declared.(type) {
	case *ast.FuncDecl:
		declared.Doc, declared.Body = nil, nil
	case *ast.GenDecl:
		declared.Doc = nil
	}
	ast.Inspect(declared, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field:
			node.Doc, node.Comment = nil, nil
		case *ast.ValueSpec:
			node.Doc, node.Comment = nil, nil
		case *ast.TypeSpec:
			node.Doc, node.Comment = nil, nil
		}
		return true
	})
	// Positions would keep the lines that the comments stood on.
	var line bytes.Buffer
	settings := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}
	if err := settings.Fprint(&line, token.NewFileSet(), declared); err != nil {
		fmt.Fprintf(&line, "cannot be printed: %v", err)
	}
	// Without this, the remark of package doc about omitted fields would follow the brace.
	text, remark, filtered := strings.Cut(line.String(), "}// ")
	if filtered {
		text = strings.TrimRight(text, "\n") + "\n\t// " + strings.TrimRight(remark, "\n") + "\n}"
	}
	l.text.WriteString(strings.TrimRight(text, "\n") + "\n")
}
