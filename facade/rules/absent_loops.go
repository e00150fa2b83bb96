package rules

import (
	"maps"

	"github.com/google/cel-go/common/ast"
)

// loop goes through what macros such as all and map are made of. Nothing is known of how often a step is taken.
func (a absence) loop(e ast.Expr) belief {
	loop := e.AsComprehension()
	element := readOf(e, a.of(loop.IterRange()))
	if element.fails != nil {
		return element
	}
	within := maps.Clone(a)
	within[loop.IterVar()] = element
	if loop.HasIterVar2() {
		within[loop.IterVar2()] = element
	}
	result := a.of(loop.AccuInit())
	for range 2 { // the second step knows what the first one may have added
		within[loop.AccuVar()] = belief{absent: result.absent, holds: result.holds}
		step := within.all([]ast.Expr{loop.LoopCondition(), loop.LoopStep()})
		result = belief{
			absent: result.absent || step.absent, holds: result.holds || step.holds,
			fails: first(result.fails, step.fails),
		}
	}
	within[loop.AccuVar()] = belief{absent: result.absent, holds: result.holds}
	end := within.of(loop.Result())
	end.value, end.fails = anything, first(result.fails, end.fails)
	return end
}

// first is the first part that may fail.
func first(parts ...ast.Expr) ast.Expr {
	for _, part := range parts {
		if part != nil {
			return part
		}
	}
	return nil
}
