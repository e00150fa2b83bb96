package layers

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
)

// Mention is one use of an exported name of something else: pkg.Name, value.Name, or Name: in a composite literal.
type Mention struct {
	// Package is the import path of pkg; empty for a field or a method.
	Package string
	Name    string
	Line    int
}

// Constant is an exported top-level constant with the name of its declared type; empty without one.
type Constant struct{ Name, Type string }

// exports lists the exported top-level names that a file declares, as go doc does: of constants or variables that are
// declared together, the first one stands for all; constants of an exported type belong to it, as its methods do.
func exports(parsed *ast.File) (names []string, constants []Constant) {
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && decl.Name.IsExported() {
				names = append(names, decl.Name.Name)
			}
		case *ast.GenDecl:
			group := constantsOf(decl)
			constants = append(constants, group...)
			if len(group) > 0 && ast.IsExported(group[0].Type) {
				continue
			}
			names = append(names, declaredIn(decl)...)
		}
	}
	return names, constants
}

// declaredIn are the exported types of a declaration, or the first of its exported constants or variables.
func declaredIn(decl *ast.GenDecl) []string {
	var names []string
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				names = append(names, spec.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					return []string{name.Name}
				}
			}
		}
	}
	return names
}

// constantsOf reads a group of constants, where one without a type and a value has those of the one before.
func constantsOf(decl *ast.GenDecl) []Constant {
	var found []Constant
	typ := ""
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok || decl.Tok != token.CONST {
			return nil
		}
		if named, ok := spec.Type.(*ast.Ident); ok {
			typ = named.Name
		} else if spec.Type != nil || spec.Values != nil {
			typ = ""
		}
		for _, name := range spec.Names {
			if name.IsExported() {
				found = append(found, Constant{name.Name, typ})
			}
		}
	}
	return found
}

// mentions lists the exported names of others that a file uses.
func mentions(positions *token.FileSet, parsed *ast.File) []Mention {
	imported := map[string]string{}
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // The parser has accepted it, so this cannot happen.
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = target
	}
	var found []Mention
	add := func(from string, name *ast.Ident) {
		if name.IsExported() {
			found = append(found, Mention{from, name.Name, positions.Position(name.Pos()).Line})
		}
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			from := ""
			if of, ok := node.X.(*ast.Ident); ok {
				from = imported[of.Name]
			}
			add(from, node.Sel)
		case *ast.CompositeLit:
			for _, element := range node.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok {
						add("", key)
					}
				}
			}
		}
		return true
	})
	return found
}

// overlong lists the lines with more than the columns; a tab counts as tabWidth.
func overlong(text string, columns int) []Line {
	var found []Line
	number := 0
	for line := range strings.Lines(text) {
		number++
		width := 0
		for _, r := range strings.TrimRight(line, "\r\n") {
			if width++; r == '\t' {
				width += tabWidth - 1
			}
		}
		if width > columns && !strings.HasPrefix(line, "// +kubebuilder:") { // such a marker is one line to its tools
			found = append(found, Line{number, width})
		}
	}
	return found
}
