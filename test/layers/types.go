package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ForeignTypes reports each type of a package that is not promised in a signature, exported field or alias of a
// promised package: its users could neither name that type nor rely on it. Unexported types that exported declarations
// mention count as well, without their unexported fields and methods. Values without a declared type are not checked.
func ForeignTypes(sources fs.FS, promised []string) ([]Breach, error) {
	module, err := modulePath(sources, "go.mod")
	if err != nil {
		return nil, err
	}
	var found []Breach
	for _, dir := range promised {
		s := &surface{module: module, promised: promised, files: token.NewFileSet(), types: map[string]typeDecl{}}
		if err := s.load(sources, dir); err != nil {
			return nil, fmt.Errorf("reading the promised package %s: %w", dir, err)
		}
		s.check()
		found = append(found, s.breaches...)
	}
	return found, nil
}

// surface is the exported part of one package.
type surface struct {
	module   string
	promised []string
	files    *token.FileSet
	types    map[string]typeDecl
	// decls are the exported functions, constants and variables with the imports of their file.
	decls []declaration
	// pending are the names of types to check. Each is removed from types when it is checked.
	pending  []string
	breaches []Breach
}

type declaration struct {
	node    ast.Node
	imports map[string]string
}

type typeDecl struct {
	declaration
	methods []declaration
}

func (s *surface) load(sources fs.FS, dir string) error {
	names, err := fs.Glob(sources, path.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(names) == 0 {
		return fmt.Errorf("no Go files in %s", dir)
	}
	for _, name := range names {
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		imports := s.importsOf(parsed)
		for _, decl := range parsed.Decls {
			s.add(decl, imports)
		}
	}
	return nil
}

// importsOf maps the names of packages of this module to their folders.
func (s *surface) importsOf(parsed *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range parsed.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		dir, own := strings.CutPrefix(target, s.module+"/")
		switch {
		case own && spec.Name != nil:
			imports[spec.Name.Name] = dir
		case own:
			imports[path.Base(dir)] = dir
		}
	}
	return imports
}

func (s *surface) add(decl ast.Decl, imports map[string]string) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		switch owner, _, isMethod := strings.Cut(funcName(decl), "."); {
		case !decl.Name.IsExported():
		case isMethod:
			known := s.types[owner]
			known.methods = append(known.methods, declaration{decl.Type, imports})
			s.types[owner] = known
		default:
			s.decls = append(s.decls, declaration{decl.Type, imports})
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			s.addSpec(spec, imports)
		}
	}
}

func (s *surface) addSpec(spec ast.Spec, imports map[string]string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		known := s.types[spec.Name.Name]
		known.declaration = declaration{spec, imports}
		s.types[spec.Name.Name] = known
		if spec.Name.IsExported() {
			s.pending = append(s.pending, spec.Name.Name)
		}
	case *ast.ValueSpec:
		if spec.Type != nil && slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
			s.decls = append(s.decls, declaration{spec.Type, imports})
		}
	}
}

// check walks the exported declarations, and the types that they mention.
func (s *surface) check() {
	for _, d := range s.decls {
		s.walk(d)
	}
	for len(s.pending) > 0 {
		name := s.pending[0]
		s.pending = s.pending[1:]
		decl, unchecked := s.types[name]
		delete(s.types, name)
		if !unchecked || decl.node == nil {
			continue
		}
		s.walk(decl.declaration)
		for _, method := range decl.methods {
			s.walk(method)
		}
	}
}

func (s *surface) walk(d declaration) {
	ast.Inspect(d.node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field:
			// Embedded fields and elements of interfaces do not have names, and promote exported names.
			return len(node.Names) == 0 || slices.ContainsFunc(node.Names, (*ast.Ident).IsExported) ||
				s.isParameter(node, d.node)
		case *ast.Ident:
			if _, local := s.types[node.Name]; local {
				s.pending = append(s.pending, node.Name)
			}
		case *ast.SelectorExpr:
			s.mention(node, d.imports)
			return false
		}
		return true
	})
}

// isParameter is true for parameters, results and type parameters, whose names are never exported, and false for
// fields.
func (s *surface) isParameter(field *ast.Field, within ast.Node) (parameter bool) {
	ast.Inspect(within, func(node ast.Node) bool {
		var lists []*ast.FieldList
		switch node := node.(type) {
		case *ast.FuncType:
			lists = []*ast.FieldList{node.TypeParams, node.Params, node.Results}
		case *ast.TypeSpec:
			lists = []*ast.FieldList{node.TypeParams}
		}
		for _, list := range lists {
			parameter = parameter || list != nil && slices.Contains(list.List, field)
		}
		return !parameter
	})
	return parameter
}

func (s *surface) mention(selector *ast.SelectorExpr, imports map[string]string) {
	name, _ := selector.X.(*ast.Ident)
	if name == nil {
		return
	}
	dir, own := imports[name.Name]
	if !own || slices.Contains(s.promised, dir) {
		return
	}
	at := s.files.Position(selector.Pos())
	s.breaches = append(s.breaches, Breach{
		fmt.Sprintf("%s:%d", at.Filename, at.Line),
		fmt.Sprintf("the public API mentions %s of %s, which is not promised", selector.Sel.Name, dir),
	})
}
