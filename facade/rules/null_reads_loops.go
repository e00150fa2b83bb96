package rules

import (
	"maps"

	"github.com/google/cel-go/common/ast"
)

// evaluateLoop evaluates a comprehension, to which CEL expands macros such as all and map. The number of iterations is
// unknown, so the result has no certain value.
func (a absence) evaluateLoop(e ast.Expr) belief {
	loop := e.AsComprehension()
	// The range must not be null. Its elements may be the null object if the range may contain it.
	element := readNonNull(e, a.evaluateNode(loop.IterRange()))
	if element.failingPart != nil {
		return element
	}
	// A loop variable can hide the object's name, but only within the loop.
	within := maps.Clone(a)
	within[loop.IterVar()] = element
	if loop.HasIterVar2() {
		within[loop.IterVar2()] = element
	}
	result := a.evaluateNode(loop.AccuInit())
	// The second iteration sees the elements that the first one may have added to the accumulator.
	for range 2 {
		within[loop.AccuVar()] = belief{mayBeNull: result.mayBeNull, mayContainNull: result.mayContainNull}
		step := within.evaluateParts([]ast.Expr{loop.LoopCondition(), loop.LoopStep()})
		result = belief{
			mayBeNull: result.mayBeNull || step.mayBeNull, mayContainNull: result.mayContainNull || step.mayContainNull,
			failingPart: firstFailingPart(result.failingPart, step.failingPart),
		}
	}
	within[loop.AccuVar()] = belief{mayBeNull: result.mayBeNull, mayContainNull: result.mayContainNull}
	// The accumulator of a loop without iterations keeps its first value, so no value is certain.
	end := within.evaluateNode(loop.Result())
	end.value, end.failingPart = unknownValue, firstFailingPart(result.failingPart, end.failingPart)
	return end
}

// firstFailingPart returns the first part that may fail, or nil.
func firstFailingPart(parts ...ast.Expr) ast.Expr {
	for _, part := range parts {
		if part != nil {
			return part
		}
	}
	return nil
}
