package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// comparisons are changed to their opposite, and to what differs where both sides are equal.
var comparisons = map[token.Token][]token.Token{
	token.EQL: {token.NEQ},
	token.NEQ: {token.EQL},
	token.LSS: {token.GEQ, token.LEQ},
	token.LEQ: {token.GTR, token.LSS},
	token.GTR: {token.LEQ, token.GEQ},
	token.GEQ: {token.LSS, token.GTR},
}

var logicalOperators = map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}

var arithmetic = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
}

var assignments = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
}

func (s *search) binary(node *ast.BinaryExpr) {
	changes := comparisons[node.Op]
	if to, is := logicalOperators[node.Op]; is {
		changes = []token.Token{to}
	}
	if len(changes) > 0 && s.isBool(node) {
		s.choice(node, changes)
	}
	if to, is := arithmetic[node.Op]; is {
		changed := s.plain(node.X) + " " + to.String() + " " + s.plain(node.Y)
		s.number(node, node.OpPos, s.text(node.X)+" "+to.String()+" "+s.text(node.Y), changed)
	}
}

// choice lets a switch choose between a comparison and its changes: only one of them is evaluated.
func (s *search) choice(node *ast.BinaryExpr, changes []token.Token) {
	var text, switches []string
	var ids []int
	for _, to := range changes {
		id := s.mutant(node.OpPos, s.text(node), s.text(node.X)+" "+to.String()+" "+s.text(node.Y))
		ids = append(ids, id)
		text = append(text, fmt.Sprintf("mutantOn(%d) && (%s %s %s)", id, s.plain(node.X), to, s.plain(node.Y)))
		switches = append(switches, fmt.Sprintf("mutantOff(%d)", id))
	}
	s.site(node, func(part part) string {
		unchanged := s.within(part, node.X) + " " + node.Op.String() + " " + s.within(part, node.Y)
		return "(" + strings.Join(text, " || ") + " || " + strings.Join(switches, " && ") + " && (" + unchanged + "))"
	}, ids...)
}

func (s *search) unary(node *ast.UnaryExpr) {
	switch node.Op {
	case token.NOT:
		if s.isBool(node) {
			id := s.mutant(node.Pos(), s.text(node), s.text(node.X))
			s.site(node, func(part part) string {
				return fmt.Sprintf("(mutantOn(%d) != (!%s))", id, s.within(part, node.X))
			}, id)
		}
	case token.SUB:
		s.number(node, node.Pos(), "+"+s.text(node.X), "+"+s.plain(node.X))
	}
}

// number changes a computed number; the type is written out, as it cannot be inferred for constants.
func (s *search) number(node ast.Expr, at token.Pos, to, changed string) {
	of, is := s.typeName(node)
	if !is {
		return
	}
	id := s.mutant(at, s.text(node), to)
	s.site(node, func(part part) string {
		return fmt.Sprintf("func() %s { if mutantOn(%d) { return %s }; return %s }()", of, id, changed, part.inside())
	}, id)
}

// typeName is how a number's type is called in this file; false if it is none, or is of a package not imported here.
func (s *search) typeName(of ast.Expr) (string, bool) {
	typed := s.info.Types[of].Type
	basic, is := typed.Underlying().(*types.Basic)
	if !is || basic.Info()&types.IsNumeric == 0 || basic.Info()&types.IsUntyped != 0 {
		return "", false
	}
	known := true
	name := types.TypeString(typed, func(from *types.Package) string {
		if from == s.pkg {
			return ""
		}
		for _, imported := range s.tree.Imports {
			if strings.Trim(imported.Path.Value, `"`) == from.Path() {
				if imported.Name != nil {
					return imported.Name.Name
				}
				return from.Name()
			}
		}
		known = false
		return ""
	})
	return name, known
}

// isCondition reports whether a bool is a condition other than a comparison: comparisons have changes of their own.
func (s *search) isCondition(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.ParenExpr, *ast.BinaryExpr:
		return false
	case *ast.UnaryExpr:
		if of.Op == token.NOT {
			return false
		}
	}
	known, is := s.info.Types[of]
	if !is || known.Type == nil || !known.IsValue() || !s.isBool(of) {
		return false
	}
	switch parent := s.parent().(type) {
	case *ast.IfStmt:
		return true
	case *ast.ForStmt:
		return parent.Cond != nil && ast.Unparen(parent.Cond) == of
	case *ast.BinaryExpr:
		return logicalOperators[parent.Op] != 0
	case *ast.CaseClause:
		return slices.Contains(parent.List, of)
	}
	return false
}

func (s *search) negated(of ast.Expr) {
	id := s.mutant(of.Pos(), s.text(of), "!"+s.text(of))
	s.site(of, func(part part) string { return fmt.Sprintf("(mutantOn(%d) != (%s))", id, part.inside()) }, id)
}

// literal changes a returned bool unless it is returned beside an error, where callers ignore it.
func (s *search) literal(of *ast.Ident) {
	returned, is := s.parent().(*ast.ReturnStmt)
	if !is || of.Name != "true" && of.Name != "false" {
		return
	}
	if last := s.info.Types[returned.Results[len(returned.Results)-1]]; !last.IsNil() && isError(last.Type) {
		return
	}
	if s.info.Uses[of] != types.Universe.Lookup(of.Name) || s.info.Types[of].Type != types.Typ[types.Bool] {
		return
	}
	id := s.mutant(of.Pos(), "return "+of.Name, "return !"+of.Name)
	s.site(of, func(part) string { return fmt.Sprintf("(mutantOn(%d) != %s)", id, of.Name) }, id)
}

func isError(of types.Type) bool {
	wanted, is := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return is && types.Implements(of, wanted)
}
