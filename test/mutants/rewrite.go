package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// site is a piece of the source that is replaced by one with switches. Sites are nested, as expressions are.
type site struct {
	ids        []int
	start, end int
	render     func(text part) string
}

// part is a piece of a file that is being rewritten.
type part struct {
	code       *source
	start, end int
	// currentSite is the site that is being rendered.
	currentSite *site
}

// inside returns the source of the piece with the switches of nested sites.
func (p part) inside() string {
	var text strings.Builder
	position := p.start
	for _, one := range p.code.sites {
		if one == p.currentSite || one.start < position || one.end > p.end {
			continue
		}
		text.Write(p.code.text[position:one.start])
		text.WriteString(one.render(part{code: p.code, start: one.start, end: one.end, currentSite: one}))
		position = one.end
	}
	text.Write(p.code.text[position:p.end])
	return text.String()
}

// within is a node of the piece, with its switches.
func (s *search) within(p part, node ast.Node) string {
	p.start, p.end = s.offset(node.Pos()), s.offset(node.End())
	return p.inside()
}

// plain is a node as it stands in the source.
func (s *search) plain(node ast.Node) string {
	return string(s.code.text[s.offset(node.Pos()):s.offset(node.End())])
}

// switches is added to the package. A switch that is read for the first time appends its number to a file, if there is
// one. It writes at once, because a program does not get a signal before its end.
const switches = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantChosen, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantRecord    = mutantOpen(os.Getenv("MUTANTS_RECORD"))
	mutantReached   [%d]atomic.Bool
)

func mutantOpen(name string) *os.File {
	file, _ := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return file
}

func mutantOn(id int) bool {
	if mutantRecord != nil && !mutantReached[id].Swap(true) {
		mutantRecord.WriteString(strconv.Itoa(id) + "\n")
	}
	return mutantChosen == id
}

func mutantOff(id int) bool { return mutantChosen != id }
`

// writeOverlay writes the packages with the switches of their changes into a folder, and returns the overlay file for
// the compiler.
func writeOverlay(folder string, targets []*target) (string, error) {
	replaced := map[string]string{}
	for _, one := range targets {
		for path, text := range one.rewritten() {
			replaced[path] = filepath.Join(folder, strconv.Itoa(len(replaced))+".go")
			if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
				return "", fmt.Errorf("writing the changed files: %w", err)
			}
		}
	}
	path := filepath.Join(folder, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	return path, nil
}

// rewritten returns the changed and added files of the package, by path.
func (t *target) rewritten() map[string]string {
	wanted, lastID := map[int]bool{}, 0
	for _, one := range t.mutants {
		wanted[one.id] = true
	}
	files := map[string]string{}
	for _, file := range t.files {
		file.sites = slices.DeleteFunc(file.sites, func(one *site) bool {
			return !slices.ContainsFunc(one.ids, func(id int) bool { return wanted[id] })
		})
		for _, one := range file.sites {
			lastID = max(lastID, slices.Max(one.ids))
		}
		if len(file.sites) > 0 {
			files[file.path] = part{code: file, end: len(file.text)}.inside()
		}
	}
	files[filepath.Join(t.dir, "mutants_switches.go")] = fmt.Sprintf(switches, t.name, lastID+1)
	return files
}
