package rules

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/parser"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// checkNullReads returns an error if the expression reads fields of an object that is null in some of the rule's
// operations. The error suggests a guard. Without this check, such a rule could deny all creations or deletions.
func (r *Rule) checkNullReads(tree *cel.Ast) error {
	var found []error
	for _, one := range []struct {
		operation            admissionregistrationv1.OperationType
		name, where, instead string
	}{
		{admissionregistrationv1.Create, oldObjectVariable, "a creation", `give Operations("UPDATE")`},
		{admissionregistrationv1.Delete, objectVariable, "a deletion", "leave DELETE out of Operations"},
	} {
		if !slices.Contains(r.operations, one.operation) {
			continue
		}
		parsed := tree.NativeRep()
		// Only one of the two objects is null at a time, so the other name is unknown in this evaluation.
		read := absence{one.name: {value: nullValue, mayBeNull: true}}.evaluateNode(parsed.Expr()).failingPart
		if read == nil {
			continue
		}
		// If the part cannot be printed, the whole expression is still a useful message.
		text, err := parser.Unparse(read, parsed.SourceInfo())
		if err != nil {
			text = r.expression
		}
		found = append(found, fmt.Errorf(
			"%s is read in %s as well, where %s is null: write \"%s == null || (...)\" around it, or %s",
			text, one.where, one.name, one.name, one.instead,
		))
	}
	return errors.Join(found...)
}

// belief is the result of evaluating a part of an expression while an object is null: a conservative approximation of
// all possible values.
type belief struct {
	value knownValue
	// mayBeNull reports that the part may be the null object. holds reports that it may contain that object, as a list
	// does.
	mayBeNull, mayContainNull bool
	// failingPart is a part that may fail because of null, if that failure may reach this part; else nil.
	failingPart ast.Expr
}

// knownValue is the value of a part if that is certain, unless the part fails. The zero value means that nothing is
// known.
type knownValue int

const (
	unknownValue knownValue = iota
	nullValue
	trueValue
	falseValue
)

// absence has the beliefs about names: the null object and the variables of loops. Other names are unknown and never
// null.
type absence map[string]belief

// evaluateNode evaluates an expression.
func (a absence) evaluateNode(e ast.Expr) belief {
	switch e.Kind() {
	case ast.LiteralKind:
		return belief{value: literalValue(e.AsLiteral())}
	case ast.IdentKind:
		return a[e.AsIdent()]
	case ast.SelectKind:
		return readNonNull(e, a.evaluateNode(e.AsSelect().Operand()))
	case ast.CallKind:
		return a.evaluateCall(e)
	case ast.ComprehensionKind:
		return a.evaluateLoop(e)
	case ast.ListKind:
		return a.evaluateParts(e.AsList().Elements()).insideContainer()
	case ast.MapKind:
		return a.evaluateEntries(e.AsMap().Entries()).insideContainer()
	case ast.StructKind:
		return a.evaluateEntries(e.AsStruct().Fields()).insideContainer()
	// A kind of expression that is unknown to this code counts as failing, so that a new CEL version cannot bypass the
	// check.
	default:
		return belief{failingPart: e}
	}
}

// literalValue returns the value of a literal.
func literalValue(literal ref.Val) knownValue {
	switch literal {
	case types.True:
		return trueValue
	case types.False:
		return falseValue
	case types.NullValue:
		return nullValue
	default:
		return unknownValue
	}
}

// readNonNull returns the belief of a part that fails if its operand is null, such as a field selection. If the operand
// may contain the null object, the result may be that object, or contain it.
func readNonNull(e ast.Expr, operand belief) belief {
	if operand.failingPart == nil && operand.mayBeNull {
		return belief{failingPart: e}
	}
	return belief{failingPart: operand.failingPart, mayBeNull: operand.mayContainNull,
		mayContainNull: operand.mayContainNull}
}

// evaluateCall evaluates operators and functions. Comparisons accept null, and so does the function type; all others
// may fail for it. Some of the others accept null in the present version of CEL, such as has, but that is not
// documented.
func (a absence) evaluateCall(e ast.Expr) belief {
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return combineLogical(a.evaluateNode(args[0]), a.evaluateNode(args[1]), falseValue, trueValue)
	case operators.LogicalOr:
		return combineLogical(a.evaluateNode(args[0]), a.evaluateNode(args[1]), trueValue, falseValue)
	case operators.LogicalNot:
		return negateBelief(a.evaluateNode(args[0]))
	case operators.Conditional:
		return a.evaluateConditional(args)
	case operators.Equals:
		return compareBeliefs(a.evaluateNode(args[0]), a.evaluateNode(args[1]))
	case operators.NotEquals:
		return negateBelief(compareBeliefs(a.evaluateNode(args[0]), a.evaluateNode(args[1])))
	// Macros add this operator to their loop conditions. It turns errors into true, so it never fails.
	case operators.NotStrictlyFalse:
		return belief{}
	case "dyn":
		return a.evaluateNode(args[0])
	case "type":
		return belief{failingPart: a.evaluateNode(args[0]).failingPart}
	// Macros build their lists by addition. A sum itself is never null.
	case operators.Add:
		sum := readNonNull(e, a.evaluateParts(args))
		sum.mayBeNull = false
		return sum
	}
	// The target of a method must not be null either.
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	return readNonNull(e, a.evaluateParts(args))
}

// combineLogical combines the operands of && or ||. The decisive value is false for && and true for ||. In CEL, a
// decisive operand decides the result even if the other one fails, on either side.
func combineLogical(left, right belief, decisive, other knownValue) belief {
	for _, side := range []belief{left, right} {
		if side.value == decisive && side.failingPart == nil {
			return belief{value: decisive}
		}
	}
	result := belief{failingPart: firstFailingPart(left.failingPart, right.failingPart)}
	if left.value == other && right.value == other {
		result.value = other
	}
	return result
}

// negateBelief negates a belief. The result is a bool, and so is neither null nor a container.
func negateBelief(b belief) belief {
	switch b.value {
	case trueValue:
		b.value = falseValue
	case falseValue:
		b.value = trueValue
	default:
		b.value = unknownValue
	}
	b.mayBeNull, b.mayContainNull = false, false
	return b
}

// compareBeliefs returns the belief of a comparison. Only a comparison of null with null has a certain result; null
// with any other value stays open, since the value may be null as well.
func compareBeliefs(left, right belief) belief {
	result := belief{failingPart: firstFailingPart(left.failingPart, right.failingPart)}
	if left.value == nullValue && right.value == nullValue {
		result.value = trueValue
	}
	return result
}

// evaluateConditional evaluates the conditional operator. With a certain condition, only the chosen side is evaluated,
// which makes a guard effective. Otherwise, either side is possible.
func (a absence) evaluateConditional(args []ast.Expr) belief {
	condition := a.evaluateNode(args[0])
	switch {
	case condition.failingPart != nil:
		return belief{failingPart: condition.failingPart}
	case condition.value == trueValue:
		return a.evaluateNode(args[1])
	case condition.value == falseValue:
		return a.evaluateNode(args[2])
	}
	result, other := a.evaluateNode(args[1]), a.evaluateNode(args[2])
	result.failingPart = firstFailingPart(result.failingPart, other.failingPart)
	if result.value != other.value {
		result.value = unknownValue
	}
	result.mayBeNull, result.mayContainNull = result.mayBeNull || other.mayBeNull, result.mayContainNull ||
		other.mayContainNull
	return result
}

// evaluateParts merges the beliefs of several parts: each property holds if it holds for any part.
func (a absence) evaluateParts(parts []ast.Expr) (result belief) {
	for _, part := range parts {
		one := a.evaluateNode(part)
		result.failingPart = firstFailingPart(result.failingPart, one.failingPart)
		result.mayBeNull, result.mayContainNull = result.mayBeNull || one.mayBeNull, result.mayContainNull ||
			one.mayContainNull
	}
	return result
}

// insideContainer returns the belief of a container, such as a list, that has the part as an element.
func (b belief) insideContainer() belief {
	return belief{mayContainNull: b.mayBeNull || b.mayContainNull, failingPart: b.failingPart}
}

// evaluateEntries merges the beliefs of the keys and values of a map, or of the fields of a struct.
func (a absence) evaluateEntries(entries []ast.EntryExpr) belief {
	var parts []ast.Expr
	for _, entry := range entries {
		if entry.Kind() == ast.MapEntryKind {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		} else {
			parts = append(parts, entry.AsStructField().Value())
		}
	}
	return a.evaluateParts(parts)
}
