package documents

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Names returns the exported names of a package, and its exported methods as "Type.Method".
func Names(sources fs.FS, directory string) (names, methods []string, err error) {
	p, err := parsePackage(sources, directory)
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

// parsePackage reads the exported declarations of a package.
func parsePackage(sources fs.FS, directory string) (*doc.Package, error) {
	names, err := fs.Glob(sources, path.Join(directory, "*.go"))
	if err != nil {
		return nil, err
	}
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no package in %s", directory)
	}
	return doc.NewFromFiles(set, files, directory)
}
