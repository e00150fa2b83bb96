package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// target is a package with all its changes.
type target struct {
	path, dir, name string
	files           []*source
	mutants         []*mutant
}

// source is a file, and the places in it that have changes.
type source struct {
	path  string
	text  []byte
	sites []*site
}

func pathsOf(targets []*target) (paths []string) {
	for _, one := range targets {
		paths = append(paths, one.path)
	}
	return paths
}

// load parses and checks a package, and finds its changes. The first has the number that is given.
func (m module) load(ctx context.Context, one listedPackage, firstID int) (*target, error) {
	files := token.NewFileSet()
	var parsed []*ast.File
	loaded := &target{path: one.ImportPath, dir: one.Dir}
	for _, name := range one.GoFiles {
		path := filepath.Join(one.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a file of %s: %w", one.ImportPath, err)
		}
		tree, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing a file of %s: %w", one.ImportPath, err)
		}
		parsed = append(parsed, tree)
		loaded.name = tree.Name.Name
		loaded.files = append(loaded.files, &source{path: path, text: text})
	}
	imported, err := m.importer(ctx, files, one.ImportPath, parsed)
	if err != nil {
		return nil, err
	}
	info := types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
	}
	checked, err := (&types.Config{Importer: imported}).Check(one.ImportPath, files, parsed, &info)
	if err != nil {
		return nil, fmt.Errorf("checking the types of %s: %w", one.ImportPath, err)
	}
	for i, tree := range parsed {
		search := search{
			code: loaded.files[i], path: m.relative(loaded.files[i].path), tree: tree, files: files, info: &info,
			pkg: checked,
		}
		loaded.mutants = append(loaded.mutants, search.mutants(firstID+len(loaded.mutants))...)
	}
	return loaded, nil
}

// importer reads the types of imported packages from the compiler's export data.
func (m module) importer(
	ctx context.Context, files *token.FileSet, path string, parsed []*ast.File,
) (types.Importer, error) {
	if !slices.ContainsFunc(parsed, func(tree *ast.File) bool { return len(tree.Imports) > 0 }) {
		return nil, nil
	}
	all, err := m.list(ctx, "-export", "-deps", "-json=ImportPath,Export", path)
	if err != nil {
		return nil, err
	}
	exported := map[string]string{}
	for _, one := range all {
		exported[one.ImportPath] = one.Export
	}
	return importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exported[path])
	}), nil
}
