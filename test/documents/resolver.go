package documents

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
)

// Resolver finds out whether the Go names in a text exist.
type Resolver struct {
	set      *token.FileSet
	pkg      *types.Package
	position token.Pos
}

// Resolver returns one that knows the packages of the compiler and these declarations.
func (c *Compiler) Resolver(declarations string) (*Resolver, error) {
	file, err := parser.ParseFile(c.set, "names", c.header+declarations, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var wrong []error
	config := types.Config{Importer: c.imports, Error: func(err error) {
		var problem types.Error
		if !errors.As(err, &problem) || !problem.Soft {
			wrong = append(wrong, err)
		}
	}}
	pkg, _ := config.Check("names", c.set, []*ast.File{file}, nil) // its errors are in wrong
	return &Resolver{c.set, pkg, file.Decls[len(file.Decls)-1].Pos()}, errors.Join(wrong...)
}

// Check resolves the selectors of an expression, such as kopf.Retries and time.Second, and returns their number. Other
// parts of the expression, such as its arguments, are not checked. An ellipsis stands for anything.
func (r *Resolver) Check(expression string) (names int, err error) {
	parsed, err := parser.ParseExpr(strings.ReplaceAll(expression, "…", "nil"))
	if err != nil {
		return 0, err
	}
	var wrong []error
	ast.Inspect(parsed, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || !isChain(selector) {
			return true
		}
		names++
		if err := r.resolve(selector); err != nil {
			wrong = append(wrong, err)
		}
		return false
	})
	return names, errors.Join(wrong...)
}

// isChain is true for identifiers with dots between them.
func isChain(selector *ast.SelectorExpr) bool {
	switch of := selector.X.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isChain(of)
	}
	return false
}

// resolve accepts values, functions and types, and the fields of a type such as kopf.ConnectionInfo.Server.
func (r *Resolver) resolve(selector *ast.SelectorExpr) error {
	err := types.CheckExpr(r.set, r.pkg, r.position, selector, nil)
	if _, nested := selector.X.(*ast.SelectorExpr); err == nil || !nested {
		return err
	}
	value := &ast.CallExpr{Fun: ast.NewIdent("new"), Args: []ast.Expr{selector.X}}
	if types.CheckExpr(r.set, r.pkg, r.position, &ast.SelectorExpr{X: value, Sel: selector.Sel}, nil) == nil {
		return nil
	}
	return err
}
