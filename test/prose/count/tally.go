package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	whatClauses = regexp.MustCompile(`(?i)\bwhat (is|are|was|were|has|had|have|it|they|there|the|he|she|we|somebody|` +
		`nobody|others|comes?|came|follows|stands)\b`)
	tellWords = regexp.MustCompile(`(?i)\b(tells?|told)\b`)
	// commonTypeNames are type names that several packages may have.
	commonTypeNames = []string{"Options", "Option", "Reader", "Writer", "Source", "Server"}
)

// tally holds the counts of all files.
type tally struct {
	code, comments, whatClauseCount, tellCount int
	functions, words, oneWordNames             int
	// exported type names, with the folders that declare them
	types                 map[string]map[string]bool
	reasons, shortReasons int
}

// countFolders counts the Go files below the folders of a repository.
func countFolders(root string, folders ...string) (*tally, error) {
	t := &tally{types: map[string]map[string]bool{}}
	files := os.DirFS(root)
	for _, folder := range folders {
		err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
			isKit := name == "facade/facadetest" || name == "facade/rules"
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (isKit || entry.Name() == "testdata"):
				return fs.SkipDir
			case entry.IsDir() || path.Ext(name) != ".go":
				return nil
			}
			source, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			return t.addFile(name, source)
		})
		if err != nil {
			return nil, fmt.Errorf("counting in %s: %w", folder, err)
		}
	}
	return t, nil
}

func (t *tally) addFile(name string, source []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("reading Go code: %w", err)
	}
	switch {
	case ast.IsGenerated(file):
		return nil
	case strings.HasSuffix(name, "_test.go"):
		t.addReasons(file)
		return nil
	}
	t.addLines(source)
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			n := wordsOf(d.Name.Name)
			t.functions, t.words = t.functions+1, t.words+n
			if n == 1 {
				t.oneWordNames++
			}
		case *ast.GenDecl:
			t.addTypes(path.Dir(name), d)
		}
	}
	return nil
}

// addLines counts lines by their tokens.
func (t *tally) addLines(source []byte) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	code, comments := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // the scanner inserts it at the end of a line
		}
		lines := code
		if tok == token.COMMENT {
			lines = comments
			t.whatClauseCount += len(whatClauses.FindAllString(literal, -1))
			t.tellCount += len(tellWords.FindAllString(literal, -1))
		}
		first := file.Line(pos)
		for line := range strings.Count(literal, "\n") + 1 {
			lines[first+line] = true
		}
	}
	t.code, t.comments = t.code+len(code), t.comments+len(comments)
}

func (t *tally) addTypes(folder string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s, isType := spec.(*ast.TypeSpec)
		if !isType || !s.Name.IsExported() || s.Assign.IsValid() || slices.Contains(commonTypeNames, s.Name.Name) {
			continue
		}
		if t.types[s.Name.Name] == nil {
			t.types[s.Name.Name] = map[string]bool{}
		}
		t.types[s.Name.Name][folder] = true
	}
}

// wordsOf returns the number of words in a name.
func wordsOf(name string) int {
	words, previous := 0, 'A'
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) && !unicode.IsUpper(previous) {
			words++
		}
		previous = r
	}
	return words
}

// doubled returns the type names that several packages declare.
func (t *tally) doubled() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.types)),
		func(name string) bool { return len(t.types[name]) < 2 })
}

// String returns the counts, one in each line.
func (t *tally) String() string {
	ratio := func(part, all int) float64 { return float64(part) / float64(max(1, all)) }
	doubled := t.doubled()
	return fmt.Sprintf("functions: %d, words per name: %.2f, one word: %.0f %%\n",
		t.functions, ratio(t.words, t.functions), 100*ratio(t.oneWordNames, t.functions)) +
		fmt.Sprintf("code lines: %d, comment lines: %d, density: %.2f\n", t.code, t.comments,
			ratio(t.comments, t.code)) +
		fmt.Sprintf("in 1,000 comment lines: what … %.1f, tells/told %.1f\n",
			1000*ratio(t.whatClauseCount, t.comments), 1000*ratio(t.tellCount, t.comments)) +
		fmt.Sprintf("doubled types: %d (%s)\n", len(doubled), strings.Join(doubled, ", ")) +
		fmt.Sprintf("reasons of test cases: %d, with four words or fewer: %.1f %%\n", t.reasons,
			100*ratio(t.shortReasons, t.reasons))
}
