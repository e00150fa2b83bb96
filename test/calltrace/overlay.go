package calltrace

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// productFolders are the folders whose functions get a probe.
var productFolders = []string{"facade", "internal", "peering", "reconcilers", "storage", "webhooks"}

const probePackage = "github.com/kopf-runtime/kopf-runtime/test/calltrace/record"

// Overlay writes copies of all production files under the root, with a probe in every function, into the folder, and
// gives the file for the -overlay option of the go command.
func Overlay(root, into string) (string, error) {
	replace := map[string]string{}
	for _, top := range productFolders {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "facadetest"):
				return filepath.SkipDir // the test kit is in no product
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			replace[path] = filepath.Join(into, strings.ReplaceAll(name, string(filepath.Separator), "_"))
			return writeProbedFile(path, filepath.ToSlash(name), replace[path])
		})
		if err != nil {
			return "", fmt.Errorf("adding probes to %s: %w", top, err)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(into, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o600)
}

// writeProbedFile writes a copy of one file, line for line.
func writeProbedFile(path, name, to string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, source, 0)
	if err != nil {
		return err
	}
	at := func(pos token.Pos) int { return positions.Position(pos).Offset }
	additions := map[int]string{at(file.Name.End()): fmt.Sprintf("; import calltrace %q", probePackage)}
	functions := 0
	for _, declared := range file.Decls {
		around := ""
		if function, ok := declared.(*ast.FuncDecl); ok {
			around = nameOf(function)
		}
		ast.Inspect(declared, func(n ast.Node) bool {
			var body *ast.BlockStmt
			switch n := n.(type) {
			case *ast.FuncDecl:
				body = n.Body
			case *ast.FuncLit:
				body = n.Body
			}
			if body != nil {
				functions++
				additions[at(body.Lbrace)+1] = fmt.Sprintf("defer calltrace.Enter(%q, %q)();", name, around)
			}
			return true
		})
	}
	if functions == 0 {
		return os.WriteFile(to, source, 0o600)
	}
	return os.WriteFile(to, insertProbes(source, additions), 0o600)
}

func insertProbes(source []byte, additions map[int]string) []byte {
	offsets := make([]int, 0, len(additions))
	for offset := range additions {
		offsets = append(offsets, offset)
	}
	slices.Sort(offsets)
	var out []byte
	last := 0
	for _, offset := range offsets {
		out = append(append(out, source[last:offset]...), additions[offset]...)
		last = offset
	}
	return append(out, source[last:]...)
}

// nameOf is Func or Type.Method.
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil || len(function.Recv.List) == 0 {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + function.Name.Name
		default:
			return function.Name.Name
		}
	}
}
