package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// step is a number that is counted up or down; not that of a loop, which would never end.
func (s *search) step(node *ast.IncDecStmt) {
	to := map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}[node.Tok]
	if s.inBlock() {
		s.statement(node, node.TokPos, s.text(node.X)+to.String(), s.plain(node.X)+to.String())
	}
}

func (s *search) assignment(node *ast.AssignStmt) {
	to, is := assignments[node.Tok]
	if !is || !s.inBlock() {
		return
	}
	if _, number := s.typeName(node.Lhs[0]); number {
		left, right := node.Lhs[0], node.Rhs[0]
		s.statement(
			node, node.TokPos, s.text(left)+" "+to.String()+" "+s.text(right),
			s.plain(left)+" "+to.String()+" "+s.plain(right),
		)
	}
}

// branch changes break to continue and back, in a loop that has an end without it.
func (s *search) branch(node *ast.BranchStmt) {
	to := map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}[node.Tok]
	if to == 0 || node.Label != nil || !s.inBlock() {
		return
	}
	for i := len(s.parents) - 1; i >= 0; i-- {
		switch loop := s.parents[i].(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.FuncLit:
			return
		case *ast.ForStmt:
			if loop.Cond != nil {
				s.statement(node, node.Pos(), to.String(), to.String())
			}
			return
		case *ast.RangeStmt:
			s.statement(node, node.Pos(), to.String(), to.String())
			return
		}
	}
}

// inBlock says whether a statement is one of a list: elsewhere no other statement may stand in its place.
func (s *search) inBlock() bool {
	switch s.parents[len(s.parents)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

func (s *search) statement(node ast.Stmt, at token.Pos, to, changed string) {
	id := s.mutant(at, s.text(node), to)
	s.site(node, func(part part) string {
		return fmt.Sprintf("if mutantOn(%d) { %s } else { %s }", id, changed, part.inside())
	}, id)
}
