package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// search finds the changes of one file.
type search struct {
	code  *source
	path  string
	tree  *ast.File
	files *token.FileSet
	info  *types.Info
	pkg   *types.Package

	parents      []ast.Node
	function     string
	firstID      int
	mutantsFound []*mutant
}

// mutants finds all changes, in the order of the code; the first has the number that is given.
func (s *search) mutants(first int) []*mutant {
	s.firstID = first
	ast.Inspect(s.tree, func(node ast.Node) bool {
		if node == nil {
			s.parents = s.parents[:len(s.parents)-1]
			return true
		}
		if len(s.parents) == 1 {
			s.function = functionName(node)
		}
		s.visit(node)
		s.parents = append(s.parents, node)
		return true
	})
	slices.SortStableFunc(s.code.sites, func(a, b *site) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	return s.mutantsFound
}

func functionName(node ast.Node) string {
	function, is := node.(*ast.FuncDecl)
	if !is {
		return ""
	}
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	for {
		switch of := receiver.(type) {
		case *ast.StarExpr:
			receiver = of.X
		case *ast.IndexExpr:
			receiver = of.X
		case *ast.IndexListExpr:
			receiver = of.X
		case *ast.Ident:
			return of.Name + "." + function.Name.Name
		default:
			return function.Name.Name
		}
	}
}

func (s *search) visit(node ast.Node) {
	if s.isConstant(node) {
		return
	}
	switch node := node.(type) {
	case *ast.BinaryExpr:
		s.binary(node)
	case *ast.UnaryExpr:
		s.unary(node)
	case *ast.IncDecStmt:
		s.step(node)
	case *ast.AssignStmt:
		s.assignment(node)
	case *ast.BranchStmt:
		s.branch(node)
	case *ast.Ident:
		s.literal(node)
	}
	if condition, is := node.(ast.Expr); is && s.isCondition(condition) {
		s.negated(condition)
	}
}

// isConstant reports whether a node is part of a constant expression, where a switch is not possible.
func (s *search) isConstant(node ast.Node) bool {
	for _, parent := range append(slices.Clone(s.parents), node) {
		if declared, is := parent.(*ast.GenDecl); is && declared.Tok == token.CONST {
			return true
		}
		if array, is := parent.(*ast.ArrayType); is && array.Len != nil {
			return true
		}
	}
	return false
}

func (s *search) parent() ast.Node {
	for i := len(s.parents) - 1; i >= 0; i-- {
		if _, is := s.parents[i].(*ast.ParenExpr); !is {
			return s.parents[i]
		}
	}
	return nil
}

// isBool says whether an expression is a bool of no other name, which is not known before the program runs.
func (s *search) isBool(of ast.Expr) bool {
	known := s.info.Types[of]
	basic, is := known.Type.(*types.Basic)
	return is && basic.Info()&types.IsBoolean != 0 && known.Value == nil
}

// text is a part of the source on one line.
func (s *search) text(node ast.Node) string {
	return strings.Join(strings.Fields(string(s.code.text[s.offset(node.Pos()):s.offset(node.End())])), " ")
}

func (s *search) offset(of token.Pos) int { return s.files.Position(of).Offset }

// mutant notes a change at a node.
func (s *search) mutant(at token.Pos, from, to string) int {
	position := s.files.Position(at)
	one := &mutant{
		id: s.firstID + len(s.mutantsFound), file: s.path, line: position.Line, column: position.Column,
		function: s.function, from: from, to: to,
	}
	s.mutantsFound = append(s.mutantsFound, one)
	return one.id
}

// site notes that the source of a node is replaced, for the changes with these numbers.
func (s *search) site(node ast.Node, render func(text part) string, ids ...int) {
	s.code.sites = append(s.code.sites, &site{
		ids: ids, start: s.offset(node.Pos()), end: s.offset(node.End()), render: render,
	})
}
