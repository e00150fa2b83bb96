package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// addReasons counts the reasons in the composite literals of a test file: in keyed fields named reason, and at the
// place of such a field in the elements of a table whose struct type has one.
func (t *tally) addReasons(file *ast.File) {
	named := map[string]int{} // struct types of the file, with the place of their field reason
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, isType := n.(*ast.TypeSpec); isType {
			if place, found := placeOfReason(spec.Type, nil); found {
				named[spec.Name.Name] = place
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		literal, isLiteral := n.(*ast.CompositeLit)
		if !isLiteral {
			return true
		}
		for _, element := range literal.Elts {
			if pair, isPair := element.(*ast.KeyValueExpr); isPair {
				if key, isName := pair.Key.(*ast.Ident); isName && key.Name == "reason" {
					t.addReason(pair.Value)
				}
				element = pair.Value
			}
			place, found := placeOfReason(elementType(literal.Type), named)
			one, isStruct := element.(*ast.CompositeLit)
			if found && isStruct && one.Type == nil && len(one.Elts) > place {
				t.addReason(one.Elts[place])
			}
		}
		return true
	})
}

// elementType returns the type of the elements of a map, a slice or an array.
func elementType(of ast.Expr) ast.Expr {
	switch of := of.(type) {
	case *ast.MapType:
		return of.Value
	case *ast.ArrayType:
		return of.Elt
	}
	return nil
}

// placeOfReason returns the index of the field reason in a struct type, or in a type of this name.
func placeOfReason(of ast.Expr, named map[string]int) (place int, found bool) {
	switch of := of.(type) {
	case *ast.Ident:
		place, found = named[of.Name]
		return place, found
	case *ast.StructType:
		for _, field := range of.Fields.List {
			for _, name := range field.Names {
				if name.Name == "reason" {
					return place, true
				}
				place++
			}
		}
	}
	return 0, false
}

// addReason counts a reason. Sums of literals count as one.
func (t *tally) addReason(value ast.Expr) {
	var text string
	for {
		sum, isSum := value.(*ast.BinaryExpr)
		if !isSum {
			break
		}
		text, value = textOf(sum.Y)+text, sum.X
	}
	text = textOf(value) + text
	if text == "" {
		return
	}
	t.reasons++
	if len(strings.Fields(text)) <= 4 {
		t.shortReasons++
	}
}

func textOf(value ast.Expr) string {
	literal, isLiteral := value.(*ast.BasicLit)
	if !isLiteral || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value) // the parser accepts no other string
	return text
}
