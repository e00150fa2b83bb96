package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// Answer is a question about the sources with the place that answers it.
type Answer struct{ Question, Package, Function string }

// Answers are the rows of the tables of questions in a document: a question, a package and a function.
func Answers(document string) (all []Answer) {
	for _, grid := range Grids(document) {
		for _, row := range grid.Rows {
			if len(row) == 3 && strings.HasSuffix(row[0], "?") {
				all = append(all, Answer{row[0], strings.Trim(row[1], "`"), strings.Trim(row[2], "`")})
			}
		}
	}
	return all
}

// Check reports an error unless the package has the function (Func, Type.Method, Type, or a variable).
func (a Answer) Check(sources fs.FS) error {
	files, err := fs.Glob(sources, path.Join(a.Package, "*.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%q: there is no package %s (%w)", a.Question, a.Package, fs.ErrNotExist)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			return err
		}
		if declares(file, a.Function) {
			return nil
		}
	}
	return fmt.Errorf("%q: package %s has no %s", a.Question, a.Package, a.Function)
}

func declares(file *ast.File, name string) bool {
	for _, declared := range file.Decls {
		switch declared := declared.(type) {
		case *ast.FuncDecl:
			if nameOf(declared) == name {
				return true
			}
		case *ast.GenDecl:
			if specified(declared, name) {
				return true
			}
		}
	}
	return false
}

func specified(declared *ast.GenDecl, name string) bool {
	for _, spec := range declared.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.Name == name {
				return true
			}
		case *ast.ValueSpec:
			for _, one := range spec.Names {
				if one.Name == name {
					return true
				}
			}
		}
	}
	return false
}

func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil || len(function.Recv.List) == 0 {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	if named, ok := receiver.(*ast.Ident); ok {
		return named.Name + "." + function.Name.Name
	}
	return function.Name.Name
}
