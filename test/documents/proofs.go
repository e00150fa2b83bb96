package documents

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Proof is a test that a document names beside a promise.
type Proof struct {
	// Folder is the folder of the test, from the root of the repository.
	Folder string
	// Name is the name of a function, or of a file.
	Name string
}

var (
	testName   = regexp.MustCompile(`^(?:Test|Fuzz)\w+$|^\w+_test\.go$`)
	folderName = regexp.MustCompile(`^[a-z]\w*(?:/[\w-]+)*$`)
)

// Proofs returns the tests that a document names in tables whose last column is "Test": folders and names in
// backquotes, where several names can follow a folder. Without has the first cells of the rows that do not name a test.
func Proofs(document string) (all []Proof, without []string) {
	for _, grid := range Grids(document) {
		if grid.Head[len(grid.Head)-1] != "Test" {
			continue
		}
		for _, row := range grid.Rows {
			found := proofsIn(row[len(row)-1])
			if all = append(all, found...); len(found) == 0 {
				without = append(without, row[0])
			}
		}
	}
	return all, without
}

func proofsIn(cell string) (found []Proof) {
	folder := ""
	for _, name := range Spans(cell) {
		switch {
		case testName.MatchString(name):
			found = append(found, Proof{folder, name})
		case folderName.MatchString(name):
			folder = name
		}
	}
	return found
}

// Check returns an error if the test does not exist.
func (p Proof) Check(sources fs.FS) error {
	pattern := "*_test.go"
	if path.Ext(p.Name) == ".go" {
		pattern = p.Name
	}
	files, err := fs.Glob(sources, path.Join(p.Folder, pattern))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := fs.ReadFile(sources, file)
		if err != nil {
			return err
		}
		if pattern == p.Name || strings.Contains(string(text), "\nfunc "+p.Name+"(") {
			return nil
		}
	}
	return fmt.Errorf("%q does not have the test %s", p.Folder, p.Name)
}
