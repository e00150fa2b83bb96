package layers

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// describe notes what the rules want to know of one parsed file.
func describe(name, text string, positions *token.FileSet, parsed *ast.File) File {
	file := File{
		Path:        name,
		IsTest:      strings.HasSuffix(name, "_test.go"),
		IsGenerated: ast.IsGenerated(parsed),
		Comment:     strings.TrimSpace(parsed.Doc.Text()),
		Lines:       strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1,
		Funcs:       functions(positions, parsed),
		Guards:      guardedIn(positions, parsed),
	}
	file.Exports, file.Constants = exports(parsed)
	file.Mentions = mentions(positions, parsed)
	file.LongLines = overlong(text, MaxColumns)
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // The parser has accepted it, so this cannot happen.
		}
		file.Imports = append(file.Imports, Import{Path: target, Line: positions.Position(spec.Pos()).Line})
	}
	return file
}

// functions lists the outermost functions; nested functions count as part of their length.
func functions(positions *token.FileSet, parsed *ast.File) []Func {
	var found []Func
	ast.Inspect(parsed, func(node ast.Node) bool {
		var name string
		switch node := node.(type) {
		case *ast.FuncDecl:
			name = funcName(node)
		case *ast.FuncLit:
			name = "func literal"
		default:
			return true
		}
		begin, end := positions.Position(node.Pos()).Line, positions.Position(node.End()).Line
		found = append(found, Func{Name: name, Line: begin, Lines: end - begin + 1})
		return false
	})
	return found
}

// funcName names a function the way a reader would look for it.
func funcName(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name
	}
	for at := decl.Recv.List[0].Type; ; {
		switch typ := at.(type) {
		case *ast.StarExpr:
			at = typ.X
		case *ast.IndexExpr:
			at = typ.X
		case *ast.IndexListExpr:
			at = typ.X
		case *ast.ParenExpr:
			at = typ.X
		case *ast.Ident:
			return typ.Name + "." + decl.Name.Name
		default:
			return decl.Name.Name
		}
	}
}
