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

// checkAbsent tells whether the expression reads fields of an object that some of the rule's operations do not have.
func (r *Rule) checkAbsent(tree *cel.Ast) error {
	var found []error
	for _, one := range []struct {
		operation            admissionregistrationv1.OperationType
		name, where, instead string
	}{
		{admissionregistrationv1.Create, oldName, "a creation", `give Operations("UPDATE")`},
		{admissionregistrationv1.Delete, newName, "a deletion", "leave DELETE out of Operations"},
	} {
		if !slices.Contains(r.operations, one.operation) {
			continue
		}
		parsed := tree.NativeRep()
		read := absence{one.name: {value: null, absent: true}}.of(parsed.Expr()).fails
		if read == nil {
			continue
		}
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

// belief is what is known of a part of an expression while an object is null.
type belief struct {
	value known
	// absent is true of what may be that object, holds of what may have it in it, as a list.
	absent, holds bool
	// fails is the part that may fail for that, if the whole part may do so; else nil.
	fails ast.Expr
}

// known is a value that is certain, unless the part fails.
type known int

const (
	anything known = iota
	null
	yes
	no
)

// absence has what is believed of names: of the object that is null, and of the variables of loops.
type absence map[string]belief

// of goes through an expression.
func (a absence) of(e ast.Expr) belief {
	switch e.Kind() {
	case ast.LiteralKind:
		return belief{value: certain(e.AsLiteral())}
	case ast.IdentKind:
		return a[e.AsIdent()]
	case ast.SelectKind:
		return readOf(e, a.of(e.AsSelect().Operand()))
	case ast.CallKind:
		return a.call(e)
	case ast.ComprehensionKind:
		return a.loop(e)
	case ast.ListKind:
		return a.all(e.AsList().Elements()).within()
	case ast.MapKind:
		return a.entries(e.AsMap().Entries()).within()
	case ast.StructKind:
		return a.entries(e.AsStruct().Fields()).within()
	default:
		return belief{fails: e}
	}
}

// certain is what is known of a literal.
func certain(literal ref.Val) known {
	switch literal {
	case types.True:
		return yes
	case types.False:
		return no
	case types.NullValue:
		return null
	default:
		return anything
	}
}

// readOf is a part that needs another one not to be null. What was in that may come out of it.
func readOf(e ast.Expr, operand belief) belief {
	if operand.fails == nil && operand.absent {
		return belief{fails: e}
	}
	return belief{fails: operand.fails, absent: operand.holds, holds: operand.holds}
}

// call goes through operators and functions. Those that compare take null, and so does what is said of types; all
// others may fail for it. Some do not in the present version of CEL, such as has, but nothing says that they never
// will.
func (a absence) call(e ast.Expr) belief {
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return both(a.of(args[0]), a.of(args[1]), no, yes)
	case operators.LogicalOr:
		return both(a.of(args[0]), a.of(args[1]), yes, no)
	case operators.LogicalNot:
		return not(a.of(args[0]))
	case operators.Conditional:
		return a.choice(args)
	case operators.Equals:
		return equal(a.of(args[0]), a.of(args[1]))
	case operators.NotEquals:
		return not(equal(a.of(args[0]), a.of(args[1])))
	case operators.NotStrictlyFalse:
		return belief{}
	case "dyn":
		return a.of(args[0])
	case "type":
		return belief{fails: a.of(args[0]).fails}
	case operators.Add: // of lists, such as of those that macros make; a sum is never null
		sum := readOf(e, a.all(args))
		sum.absent = false
		return sum
	}
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	return readOf(e, a.all(args))
}

// both is "and", which false decides, or "or", which true does: also if the other side fails, on whichever side it
// stands.
func both(left, right belief, decisive, other known) belief {
	for _, side := range []belief{left, right} {
		if side.value == decisive && side.fails == nil {
			return belief{value: decisive}
		}
	}
	result := belief{fails: first(left.fails, right.fails)}
	if left.value == other && right.value == other {
		result.value = other
	}
	return result
}

func not(b belief) belief {
	switch b.value {
	case yes:
		b.value = no
	case no:
		b.value = yes
	default:
		b.value = anything
	}
	b.absent, b.holds = false, false
	return b
}

func equal(left, right belief) belief {
	result := belief{fails: first(left.fails, right.fails)}
	if left.value == null && right.value == null {
		result.value = yes
	}
	return result
}

// choice is the one side, the other, or either of both.
func (a absence) choice(args []ast.Expr) belief {
	condition := a.of(args[0])
	switch {
	case condition.fails != nil:
		return belief{fails: condition.fails}
	case condition.value == yes:
		return a.of(args[1])
	case condition.value == no:
		return a.of(args[2])
	}
	result, other := a.of(args[1]), a.of(args[2])
	result.fails = first(result.fails, other.fails)
	if result.value != other.value {
		result.value = anything
	}
	result.absent, result.holds = result.absent || other.absent, result.holds || other.holds
	return result
}

// all is of several parts, any of them.
func (a absence) all(parts []ast.Expr) (result belief) {
	for _, part := range parts {
		one := a.of(part)
		result.fails = first(result.fails, one.fails)
		result.absent, result.holds = result.absent || one.absent, result.holds || one.holds
	}
	return result
}

// within is of what has the part in it.
func (b belief) within() belief {
	return belief{holds: b.absent || b.holds, fails: b.fails}
}

func (a absence) entries(entries []ast.EntryExpr) belief {
	var parts []ast.Expr
	for _, entry := range entries {
		if entry.Kind() == ast.MapEntryKind {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		} else {
			parts = append(parts, entry.AsStructField().Value())
		}
	}
	return a.all(parts)
}
