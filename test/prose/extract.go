package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// text is the prose of one file, as Markdown. Its line numbers are those of the file.
type text struct {
	file, markdown string
}

// extract returns the prose of the files: Markdown as it is, and the comments and texts of Go files.
func extract(root string, files []string) ([]text, error) {
	texts := make([]text, 0, len(files))
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		markdown := string(content)
		if strings.HasSuffix(file, ".go") {
			if markdown, err = proseOf(file, content); err != nil {
				return nil, err
			}
		}
		texts = append(texts, text{file, markdown})
	}
	return texts, nil
}

// proseOf returns the comments of a Go file, and its string literals of three words or more, each at its line.
func proseOf(file string, content []byte) (string, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, content, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("reading Go code: %w", err)
	}
	lines := make([]string, strings.Count(string(content), "\n")+1)
	put := func(line int, s string) {
		if lines[line-1] != "" {
			s = strings.TrimRight(lines[line-1], " ") + " " + s
		}
		lines[line-1] = s
	}
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			for i, line := range commentLines(comment.Text) {
				put(set.Position(comment.Pos()).Line+i, line)
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if s, err := strconv.Unquote(literal.Value); err == nil && isProse(literal.Value, s) {
				put(set.Position(literal.Pos()).Line, s)
			}
		}
		return true
	})
	return strings.Join(lines, "\n"), nil
}

var directive = regexp.MustCompile(`^//(go:|nolint|\+|\s*\+\w|line |export |\s*(Unordered )?[Oo]utput:)`)

// commentLines returns the lines of a comment without its markers. Indentation stays, as it marks code.
func commentLines(comment string) []string {
	if directive.MatchString(comment) {
		return nil
	}
	if inner, found := strings.CutPrefix(comment, "//"); found {
		return []string{strings.TrimPrefix(inner, " ")}
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/")
	return strings.Split(inner, "\n")
}

var sentence = regexp.MustCompile(`^[\p{L}\d%'"(‘“][^{}\n\t\\]*$`)

// isProse reports whether a string literal is a text for people: some words in one line. Raw strings are code.
func isProse(literal, s string) bool {
	return !strings.HasPrefix(literal, "`") && strings.Count(s, " ") >= 2 && sentence.MatchString(s)
}
