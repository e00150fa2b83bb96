package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/tools/go/packages"
)

// promisedFolders reads the variable Promised of test/layers from its source: this module does not import the root.
func promisedFolders(root string) ([]string, error) {
	name := filepath.Join(root, "test/layers/promises.go")
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading the list of promised packages: %w", err)
	}
	var folders []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if spec.Names[0].Name == "Promised" {
			ast.Inspect(spec, func(node ast.Node) bool {
				if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					folder, _ := strconv.Unquote(literal.Value) // The parser has accepted it.
					folders = append(folders, folder)
				}
				return true
			})
		}
		return false
	})
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s does not list any promised packages", name)
	}
	return folders, nil
}

// loadPackages returns the types of packages by folder. Folders without a package are left out.
func loadPackages(root string, folders []string) (map[string]*types.Package, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	patterns := map[string][]string{}
	for _, folder := range folders {
		dir := filepath.Join(root, folder)
		if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) > 0 {
			module := moduleOf(root, dir)
			patterns[module] = append(patterns[module], dir)
		}
	}
	loaded := map[string]*types.Package{}
	for module, dirs := range patterns {
		// Other workspaces, such as one around this repository, do not apply.
		workspace := filepath.Join(module, "go.work")
		if _, err := os.Stat(workspace); err != nil {
			workspace = "off"
		}
		// NeedDeps is left out: dependencies are then read from compiled export data instead of their sources.
		found, err := packages.Load(&packages.Config{
			Mode: packages.LoadTypes | packages.NeedName, Dir: module,
			Env: append(os.Environ(), "GOWORK="+workspace),
		}, dirs...)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if len(p.Errors) > 0 {
				return nil, fmt.Errorf("loading package %s: %w", p.PkgPath, p.Errors[0])
			}
			folder, err := filepath.Rel(root, p.Dir)
			if err != nil {
				return nil, err
			}
			loaded[filepath.ToSlash(folder)] = p.Types
		}
	}
	return loaded, nil
}

// moduleOf is the nearest folder with a go.mod, at most the root.
func moduleOf(root, dir string) string {
	for dir != root {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return root
}
