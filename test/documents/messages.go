package documents

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Message is one log line of the product, as the sources have it.
type Message struct {
	// Level is error, warning, info or debug: that of a line shown with more verbosity only.
	Level string
	// Text is the constant message; Keys are those of the line itself, sorted, without those of its logger.
	Text string
	Keys []string
	// Package is the folder.
	Package string
}

// forwardFunc is the function that hands lines of client-go over: they have the texts that they have.
const forwardFunc = "forwardLine"

// Messages finds the log lines in the production files under the folders, sorted by their texts. A line whose message
// is not constant is an error, because users could not look it up.
func Messages(sources fs.FS, folders ...string) ([]Message, error) {
	var all []Message
	for _, folder := range folders {
		err := fs.WalkDir(sources, folder, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "facadetest"): // not in an operator
				return fs.SkipDir
			case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			found, err := messagesIn(sources, name)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("looking for log lines in %s: %w", folder, err)
		}
	}
	slices.SortFunc(all, func(a, b Message) int {
		return cmp.Or(
			cmp.Compare(a.Text, b.Text), cmp.Compare(a.Level, b.Level), slices.Compare(a.Keys, b.Keys),
			cmp.Compare(a.Package, b.Package),
		)
	})
	return slices.CompactFunc(all, func(a, b Message) bool {
		return a.Text == b.Text && a.Level == b.Level && slices.Equal(a.Keys, b.Keys) && a.Package == b.Package
	}), nil
}

func messagesIn(sources fs.FS, name string) (all []Message, err error) {
	source, err := fs.ReadFile(sources, name)
	if err != nil {
		return nil, err
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, source, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if function, ok := n.(*ast.FuncDecl); ok && function.Name.Name == forwardFunc {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		level, message, rest := parseLogCall(call)
		if level == "" || err != nil {
			return true
		}
		text, constant := constantText(message)
		if !constant {
			err = fmt.Errorf("%s: the message of a log line is not a constant", positions.Position(call.Pos()))
			return false
		}
		all = append(all, Message{Level: level, Text: text, Keys: keysOf(rest), Package: path.Dir(name)})
		return true
	})
	return all, err
}

// parseLogCall reports whether a call is a log line: Info with a message, or Error with an error and a message, of a
// logger or of an expression that makes one.
func parseLogCall(call *ast.CallExpr) (level string, message ast.Expr, rest []ast.Expr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", nil, nil
	}
	if from, is := method.X.(*ast.Ident); is && from.Name == "logging" && method.Sel.Name == "Warn" {
		return "warning", call.Args[1], call.Args[2:]
	}
	if !isLogger(method.X) {
		return "", nil, nil
	}
	switch {
	case method.Sel.Name == "Info" && len(call.Args) > 0:
		level = "info"
		if inner, ok := method.X.(*ast.CallExpr); ok && called(inner) == "V" {
			level = "debug"
		}
		return level, call.Args[0], call.Args[1:]
	case method.Sel.Name == "Error" && len(call.Args) > 1:
		return "error", call.Args[1], call.Args[2:]
	}
	return "", nil, nil
}

// isLogger goes by names: those of variables and fields, and of the methods that give loggers.
func isLogger(of ast.Expr) bool {
	name := ""
	switch of := of.(type) {
	case *ast.Ident:
		name = of.Name
	case *ast.SelectorExpr:
		name = of.Sel.Name
	case *ast.CallExpr:
		name = called(of)
	}
	return strings.HasSuffix(name, "Logger") || slices.Contains([]string{
		"log", "Log", "logger", "FromContext", "V", "WithValues", "WithName", "GetLogger",
		"OfKind", "OfObject", "OfKindAndObject", "OfHandler",
	}, name)
}

func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		return fun.Sel.Name
	case *ast.Ident:
		return fun.Name
	}
	return ""
}

// constantText is that of string literals, and of their sums.
func constantText(of ast.Expr) (string, bool) {
	switch of := of.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(of.Value)
		return text, of.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := constantText(of.X)
		right, too := constantText(of.Y)
		return left + right, ok && too && of.Op == token.ADD
	}
	return "", false
}

// keysOf are every second one of the arguments; where a list is appended to, those that are appended, and "stack" for
// the stack of a panic.
func keysOf(args []ast.Expr) (keys []string) {
	if len(args) == 1 {
		if call, ok := args[0].(*ast.CallExpr); ok {
			return listed(call)
		}
	}
	for i := 0; i < len(args); i += 2 {
		if key, ok := constantText(args[i]); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func listed(call *ast.CallExpr) (keys []string) {
	switch called(call) {
	case "StackFields":
		return []string{"stack"}
	case "append":
		keys = append(keysOf(call.Args[:1]), keysOf(call.Args[1:])...)
		slices.Sort(keys)
	}
	return keys
}

// Table is the messages as rows of Markdown.
func Table(all []Message) string {
	var text strings.Builder
	text.WriteString("| Level | Message | Keys | Package |\n|--|--|--|--|\n")
	for _, m := range all {
		keys := "–"
		if len(m.Keys) > 0 {
			keys = "`" + strings.Join(m.Keys, "` `") + "`"
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", m.Level, strings.ReplaceAll(m.Text, "|", `\|`), keys, m.Package)
	}
	return text.String()
}
